"""Style of the site: the colours and the mark of the pages, each defined once."""

import re
from pathlib import Path

import pytest

import minwise as mw
from docs.tools.site_style import ICON, site_colours, unbroken_options
from minwise._internal.html import colours, icon
from minwise.comparison.page import SIDE_BY_SIDE_STYLE, STYLE

ROOT = Path(__file__).parents[2]
SOURCES = Path(mw.__file__).parent
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
STYLES = {
    "site": (ROOT / "docs" / "assets" / "site.css").read_text(encoding="utf-8"),
    "report": (SOURCES / "report" / "page_style.css").read_text(encoding="utf-8"),
    "server": (SOURCES / "server" / "page" / "style.css").read_text(encoding="utf-8"),
    "side by side": SIDE_BY_SIDE_STYLE,
    "comparison": STYLE,
}


def defined(css: str) -> list[dict[str, str]]:
    """Return the variables of each block of a style sheet."""
    return [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in re.findall(r"\{([^{}]*--[^{}]*)\}", css)]


def test_light_and_dark_define_the_same_colours() -> None:
    light, dark = defined(colours())
    assert set(light) == set(dark)
    assert len(light) > 20


def test_the_site_has_the_colours_of_the_pages() -> None:
    """The dark ones for its dark scheme, which a reader can switch to."""
    css = site_colours(colours())
    assert defined(css) == defined(colours())
    assert "prefers-color-scheme" not in css
    assert re.findall(r"^([^\s/{}]\S*) \{", css, re.MULTILINE) == [":root", '[data-md-color-scheme="slate"]']


@pytest.mark.parametrize("name", STYLES)
def test_style_sheets_define_no_colours_of_their_own(name: str) -> None:
    """They use only variables that are defined; black with an opacity is a shadow, not a colour."""
    css = re.sub(r"/\*.*?\*/", "", STYLES[name], flags=re.DOTALL)
    used = set(re.findall(r"var\((--[\w-]+)\)", css))
    assert used
    assert used <= set(defined(colours())[0])
    assert re.findall(r"(?<=[\s:,(])#[0-9a-fA-F]{3,8}\b(?=[;,\s)])|rgb\((?!0 0 0)", css) == []


def test_the_site_has_the_mark_of_the_pages() -> None:
    assert "logo: assets/icon.svg" in SETTINGS
    assert "favicon: assets/icon.svg" in SETTINGS
    assert icon().replace(' aria-hidden="true"', "") == ICON.read_text(encoding="utf-8")
    assert "docs/tools/site_style.py" in SETTINGS


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("minwise dedup a.jsonl --text-column body -o out", ["--text-column", "-o"]),
        ('<span class="w">--on-error</span> quarantine --max-bucket=5', ["--on-error", "--max-bucket"]),
        ("near-duplicate a-b --", []),
        ("&lt;--no-option&gt; -- x", []),
    ],
)
def test_options_are_not_broken(code: str, options: list[str]) -> None:
    """The text stays the same, and markup is not changed."""
    marked = unbroken_options(f"<code>{code}</code>")
    assert re.findall(r'<span class="option">([^<]*)</span>', marked) == options
    assert re.sub(r'<span class="option">([^<]*)</span>', r"\1", marked) == f"<code>{code}</code>"
