"""Commands on pages: no line break inside an option, on any screen."""

import re
from pathlib import Path

import pytest
from support.page_shapes import newsroom

from browser.conftest import Opener
from docs.tools.site_style import unbroken_options
from minwise._internal.html import colours, escape

DOCS = Path(__file__).parents[2] / "docs"
# Options that are on more than one line; they are found by their text, whatever element they are in.
BROKEN = r"""() => {
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.parentElement.closest("code") || !text.parentElement.checkVisibility()) continue;
    for (const found of text.data.matchAll(/(?<=^|\s)--?[A-Za-z][\w-]*/g)) {
      const range = document.createRange();
      range.setStart(text, found.index);
      range.setEnd(text, found.index + found[0].length);
      if (range.getClientRects().length !== 1) broken.push(found[0]);
    }
  }
  return broken;
}"""


def site_page() -> str:
    """Return every command of the guides, with the style of the site."""
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "guides").glob("*.md"))]
    commands = [line for page in pages for line in re.findall(r"^\$ (.*)$", page, re.MULTILINE)]
    blocks = "".join(unbroken_options(f"<pre><code>{escape(command)}</code></pre>") for command in commands)
    words = " ".join(unbroken_options(f"<code>{escape(command)}</code>") for command in commands)
    style = f"{colours()}{(DOCS / 'assets' / 'site.css').read_text(encoding='utf-8')}"
    return f'<style>{style}</style><main class="md-typeset">{blocks}<p>{words}</p></main>'


@pytest.mark.parametrize("width", [360, 390, 500, 768, 1280])
def test_commands_of_the_site_are_not_broken_inside_an_option(go: Opener, tmp_path: Path, width: int) -> None:
    path = tmp_path / "site.html"
    path.write_text(site_page(), encoding="utf-8")
    visit = go(path.as_uri(), viewport={"width": width, "height": 800})
    assert visit.all(".option").count() > 100
    assert visit.page.evaluate(BROKEN) == []


@pytest.mark.parametrize("width", [360, 420, 500, 1280])
def test_commands_of_the_report_are_not_broken_inside_an_option(visit: Opener, width: int) -> None:
    shape = newsroom()
    shape.report["notes"] = ["Few words; set `--shingle char:5 --strip-punctuation --mask-digits --max-bucket 5`."] * 3
    opened = visit(shape.page(), viewport={"width": width, "height": 800})
    assert opened.all(".option").count() > 10
    assert opened.page.evaluate(BROKEN) == []
