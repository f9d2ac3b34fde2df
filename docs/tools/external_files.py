"""Outside: what pages link to beyond ``docs/`` becomes part of the site. A hook of mkdocs.

A guide links to ``../../examples/newsroom/README.md``, which is right for whoever reads the files. The site has
``docs/`` as its root, so there the same file stands at ``examples/newsroom/README.md``: files are added, and links
rewritten, by that one rule.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = ["on_files", "on_page_markdown", "place_in_site", "rewrite_links"]

ROOT = Path(__file__).parents[2]
DOCS = PurePosixPath("docs")
# The site has a home of its own, and would take a README beside it for another.
RENAMED = {PurePosixPath("README.md"): PurePosixPath("overview.md")}
# Pages of the repository that the site shows, and files that they and the guides link to.
SHOWN = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "GLOSSARY.md",
    "README.md",
    "benchmarks/**/*.md",
    "examples/**/*.*",
)
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)]*)?\))")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds what lies outside."""
    from mkdocs.structure.files import File  # only where mkdocs runs

    for pattern in SHOWN:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                name = place_in_site(PurePosixPath(path.relative_to(ROOT)))
                files.append(File.generated(config, str(name), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Lets links lead to where their target stands in the site."""
    source = Path(str(page.file.abs_src_path)).relative_to(ROOT)
    return rewrite_links(markdown, PurePosixPath(source))


def rewrite_links(markdown: str, source: PurePosixPath) -> str:
    """A page with its links as the site needs them; code is left alone.

    >>> rewrite_links("[words](../../GLOSSARY.md#band)", PurePosixPath("docs/guides/index.md"))
    '[words](../GLOSSARY.md#band)'
    """
    here = place_in_site(source).parent

    def rewritten(link: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(source.parent / link[2]))
        return f"{link[1]}{os.path.relpath(place_in_site(target), here)}{link[3]}"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def place_in_site(path: PurePosixPath) -> PurePosixPath:
    """Where a file of the repository stands in the site.

    >>> place_in_site(PurePosixPath("docs/guides/index.md")), place_in_site(PurePosixPath("GLOSSARY.md"))
    (PurePosixPath('guides/index.md'), PurePosixPath('GLOSSARY.md'))
    """
    return path.relative_to(DOCS) if path.is_relative_to(DOCS) else RENAMED.get(path, path)
