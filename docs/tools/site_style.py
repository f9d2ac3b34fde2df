"""Hook of mkdocs that gives the site the colours and the mark of the pages of minwise.

The colours are those of ``src/minwise/_internal/colours.css``, for the light and the dark scheme of the site, and the
logo is the icon of the page of the server. Options in commands are not broken across lines.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = ["on_files", "on_page_content", "site_colours", "unbroken_options"]

SOURCES = Path(__file__).parents[2] / "src" / "minwise"
COLOURS = SOURCES / "_internal" / "colours.css"
ICON = SOURCES / "_internal" / "icon.svg"
# The dark colours of the pages, which follow the browser; the site has a switch.
DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root (\{.*?\})\s*\}", re.DOTALL)
CODE = re.compile(r"<code[^>]*>.*?</code>", re.DOTALL)
# An option, outside of a tag and of an entity.
OPTION = re.compile(r"(?<![\w&;-])--?[A-Za-z][\w-]*")
TAG_OR_TEXT = re.compile(r"<[^>]*>|[^<]+")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the colours and the logo."""
    from mkdocs.structure.files import File  # needed only when mkdocs runs

    colours = site_colours(COLOURS.read_text(encoding="utf-8"))
    files.append(File.generated(config, "assets/colours.css", content=colours))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    return files


def on_page_content(html: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Keep every option of a page in one line."""
    return CODE.sub(lambda code: unbroken_options(code[0]), html)


def site_colours(css: str) -> str:
    """Return the colours of the pages with the dark ones for the dark scheme of the site.

    >>> site_colours(":root { --ink: black; } @media (prefers-color-scheme: dark) { :root { --ink: white; } }")
    ':root { --ink: black; } [data-md-color-scheme="slate"] { --ink: white; }'
    """
    return DARK.sub(r'[data-md-color-scheme="slate"] \1', css)


def unbroken_options(html: str) -> str:
    """Return code with each option in an element that has no line break.

    >>> unbroken_options("<code>minwise serve --store-text</code>")
    '<code>minwise serve <span class="option">--store-text</span></code>'
    """
    return "".join(
        part if part.startswith("<") else OPTION.sub(r'<span class="option">\g<0></span>', part)
        for part in TAG_OR_TEXT.findall(html)
    )
