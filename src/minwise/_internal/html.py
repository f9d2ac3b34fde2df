"""HTML: parts of a page in, one self-contained file out that opens by double click and asks nobody for anything.

Every page shares one look. Its colours follow the reader's light or dark setting; charts and texts use the names below
(`--ink`, `--shared` …), so that nothing else has to know of it.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence

__all__ = ["escape", "facts", "folded", "page", "section", "table"]

# Nothing may be loaded, sent or run but the page's own script, even if a document's text slipped through as markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src {script}; base-uri 'none'; form-action 'none'"

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f6f7f9; --ink: #1f2430; --quiet: #5d6675; --line: #dfe3e9; --grid: #e4e7ec;
  --accent: #1259b5; --bar: #3f7fd0; --shared: #cfe8d5; --moved: #dcd6f7; --warn: #8a5a00; --warn-back: #fff3d6;
  --bad: #b3263a; --good: #1b7a3d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171d; --panel: #1c2028; --ink: #e8eaee; --quiet: #9aa4b4; --line: #333a46; --grid: #2a303a;
    --accent: #6db1ff; --bar: #4f93e6; --shared: #1f4a2e; --moved: #3b3370; --warn: #f2c96b; --warn-back: #3a2f12;
    --bad: #f0606f; --good: #62c587;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2.5rem) 4rem; max-width: 78rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.75rem; }
a { color: var(--accent); }
.quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td {
  text-align: left; padding: 0.35rem 0.75rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
}
th { color: var(--quiet); font-weight: 500; }
.number { text-align: right; }
.scroll { overflow-x: auto; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""

# What a browser would drop, change or obey instead of showing: control characters, and those that turn the direction.
INVISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {
    0x7F: "\u2421",
    **{
        code: f"\u27e8U+{code:04X}\u27e9"
        for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    },
}
# Nearly no text has one, and looking first takes a tenth of the time of translating every character.
SEARCHED = re.compile(f"[{''.join(map(chr, INVISIBLE))}]")
# Signs of markup and their names, the one that begins a name first. The standard library's module for it takes 2 ms to
# import, for its table of all names there are.
MARKUP = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;"))


def escape(text: object) -> str:
    """A text as it is to be seen: never as markup, in an element or in a quoted attribute."""
    plain = SEARCHED.sub(lambda found: INVISIBLE[ord(found[0])], str(text))
    for sign, name in MARKUP:
        plain = plain.replace(sign, name)
    return plain


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole page. ``body``, ``style`` and ``script`` are ours; whatever they hold of others is escaped already."""
    scripts = f"<script>{script}</script>\n" if script else ""
    policy = POLICY.format(script=_fingerprint(script) if script else "'none'")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def section(name: str, title: str, body: str, style: str = "") -> str:
    """A part of a page with a heading that names it; ``name`` is ours and the only one on the page, ``body`` is markup.

    The heading takes the focus of a script that has to put it somewhere.
    """
    look = f' class="{style}"' if style else ""
    heading = f'<h2 id="{name}-name" tabindex="-1">{escape(title)}</h2>'
    return f'<section id="{name}"{look} aria-labelledby="{name}-name">{heading}{body}</section>'


def _fingerprint(script: str) -> str:
    """The name of a script in a policy that allows no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def table(name: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table that scrolls by itself where it is too wide. The first ``words`` columns hold words, the others numbers.

    Args:
        name: What the table is, for those who do not see the page.
        heads: The heading of each column.
        rows: Cells as markup; the first of a row names it.
        words: How many columns, from the left, are not numbers.
    """
    looks = ["" if place < words else ' class="number"' for place in range(len(heads))]
    head = "".join(f'<th scope="col"{look}>{escape(one)}</th>' for one, look in zip(heads, looks, strict=True))
    body = "".join(f"<tr>{_row(cells, looks)}</tr>" for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names, escaped here, and their values, which are markup."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{"".join(rows)}</dl>'


def folded(words: str, body: str) -> str:
    """What is a click away; both are markup."""
    return f'<details class="folded"><summary>{words}</summary>{body}</details>'


def _row(cells: Sequence[str], looks: Sequence[str]) -> str:
    first, *others = cells
    return f'<th scope="row">{first}</th>' + "".join(
        f"<td{look}>{cell}</td>" for cell, look in zip(others, looks[1:], strict=True)
    )
