"""Hook of mkdocs that adds files outside ``docs/`` to the site.

A guide links to ``../../examples/newsroom/README.md``, which is correct in the repository. The root of the site is
``docs/``, so there the same file has the path ``examples/newsroom/README.md``. The hook adds the files and rewrites the
links accordingly.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = ["on_files", "on_page_markdown", "rewrite_links", "site_path"]

ROOT = Path(__file__).parents[2]
DOCS = PurePosixPath("docs")
# The site has its own home page, and mkdocs would treat a README next to it as another one.
RENAMED = {PurePosixPath("README.md"): PurePosixPath("overview.md")}
# Pages of the repository that the site includes, and files that they and the guides link to.
INCLUDED = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DESIGN.md",
    "GLOSSARY.md",
    "README.md",
    "SECURITY.md",
    "benchmarks/**/*.md",
    "examples/**/*.*",
)
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)]*)?\))")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the included files."""
    from mkdocs.structure.files import File  # needed only when mkdocs runs

    for pattern in INCLUDED:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                name = site_path(PurePosixPath(path.relative_to(ROOT)))
                files.append(File.generated(config, str(name), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Rewrite the links of a page to paths in the site."""
    source = Path(str(page.file.abs_src_path)).relative_to(ROOT)
    return rewrite_links(markdown, PurePosixPath(source))


def rewrite_links(markdown: str, source: PurePosixPath) -> str:
    """Return a page with links rewritten to paths in the site; code blocks are unchanged.

    >>> rewrite_links("[words](../../GLOSSARY.md#band)", PurePosixPath("docs/guides/index.md"))
    '[words](../GLOSSARY.md#band)'
    """
    folder = site_path(source).parent

    def rewritten(link: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(source.parent / link[2]))
        return f"{link[1]}{os.path.relpath(site_path(target), folder)}{link[3]}"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def site_path(path: PurePosixPath) -> PurePosixPath:
    """Return the path in the site of a file of the repository.

    >>> site_path(PurePosixPath("docs/guides/index.md")), site_path(PurePosixPath("GLOSSARY.md"))
    (PurePosixPath('guides/index.md'), PurePosixPath('GLOSSARY.md'))
    """
    return path.relative_to(DOCS) if path.is_relative_to(DOCS) else RENAMED.get(path, path)
