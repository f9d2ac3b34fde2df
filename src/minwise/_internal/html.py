"""Building blocks of self-contained HTML pages.

A page is one file that loads nothing else. All pages share one style sheet. Its colours, which are defined in
``colours.css`` for these pages, the page of the server and the documentation, follow the light or dark setting of the
browser; charts and texts refer to them by variables (``--ink``, ``--shared`` …).
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["code", "colours", "definition_list", "details", "escape", "icon", "page", "section", "table"]

# The browser loads, sends and runs nothing but the page's own script, even if text of a document were not escaped.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src {script}; base-uri 'none'; form-action 'none'"

STYLE = """
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
.option { white-space: nowrap; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""

# Visible substitutes of characters that a browser drops, changes or obeys: control and bidirectional characters.
INVISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {
    0x7F: "\u2421",
    **{
        code: f"\u27e8U+{code:04X}\u27e9"
        for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    },
}
# Few texts contain one, and searching takes a tenth of the time of translating every character.
INVISIBLE_PATTERN = re.compile(f"[{''.join(map(chr, INVISIBLE))}]")
# Characters of markup and their entities; the ampersand comes first because entities contain it. The `html` module of
# the standard library takes 2 ms to import, for its table of all entities.
ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;"))


# An option of a command.
OPTION = re.compile(r"(?<![\w&;-])--?[A-Za-z][\w-]*")
OPTION_ELEMENT = r'<span class="option">\g<0></span>'


def escape(text: object) -> str:
    """Escape a text for an element or a quoted attribute, and make invisible characters visible."""
    escaped = INVISIBLE_PATTERN.sub(lambda match: INVISIBLE[ord(match[0])], str(text))
    for character, entity in ENTITIES:
        escaped = escaped.replace(character, entity)
    return escaped


def colours() -> str:
    """Return the style sheet that defines the colours."""
    return Path(__file__).with_name("colours.css").read_text(encoding="utf-8")


def icon() -> str:
    """Return the mark of minwise, an SVG image that says nothing to a screen reader."""
    image = Path(__file__).with_name("icon.svg").read_text(encoding="utf-8")
    return image.replace("<svg", '<svg aria-hidden="true"', 1)


def code(text: str) -> str:
    """Return a command or a value as code; a line break is never inside an option.

    >>> code("minwise serve --store-text")
    '<code>minwise serve <span class="option">--store-text</span></code>'
    """
    return f"<code>{OPTION.sub(OPTION_ELEMENT, escape(text))}</code>"


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """Return a whole page.

    Args:
        title: Title of the page, as plain text.
        body: Markup of the body; texts in it must be escaped already.
        style: CSS rules in addition to the shared ones.
        script: JavaScript of the page; the content security policy allows this script only.
    """
    scripts = f"<script>{script}</script>\n" if script else ""
    policy = POLICY.format(script=_script_hash(script) if script else "'none'")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{colours()}{STYLE}{style}</style>\n</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def section(name: str, title: str, body: str, style: str = "") -> str:
    """Return a section with a heading that scripts can focus.

    Args:
        name: Identifier, unique on the page.
        title: Heading, as plain text.
        body: Markup below the heading.
        style: CSS class.
    """
    css_class = f' class="{style}"' if style else ""
    heading = f'<h2 id="{name}-name" tabindex="-1">{escape(title)}</h2>'
    return f'<section id="{name}"{css_class} aria-labelledby="{name}-name">{heading}{body}</section>'


def _script_hash(script: str) -> str:
    """Return the source expression that allows this script in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def table(name: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls horizontally where it is too wide.

    Args:
        name: Accessible name of the table.
        headings: Heading of each column, as plain text.
        rows: Cells as markup; the first cell of a row is its heading, the others hold numbers.
    """
    classes = ["", *[' class="number"'] * (len(headings) - 1)]
    columns = zip(headings, classes, strict=True)
    head = "".join(f'<th scope="col"{css_class}>{escape(heading)}</th>' for heading, css_class in columns)
    body = "".join(f"<tr>{_row(cells, classes)}</tr>" for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def definition_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a description list of names, which are escaped here, and values, which are markup."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{"".join(rows)}</dl>'


def details(summary: str, body: str) -> str:
    """Return a collapsed ``details`` element; ``summary`` and ``body`` are markup."""
    return f'<details class="folded"><summary>{summary}</summary>{body}</details>'


def _row(cells: Sequence[str], classes: Sequence[str]) -> str:
    heading, *values = cells
    return f'<th scope="row">{heading}</th>' + "".join(
        f"<td{css_class}>{value}</td>" for value, css_class in zip(values, classes[1:], strict=True)
    )
