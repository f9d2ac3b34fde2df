"""Generated pages are what the code says, and the site shows every page and asks nothing of others."""

import doctest
import importlib
import re
from pathlib import Path, PurePosixPath

import pytest

import minwise as mw
from docs.tools.external_files import rewrite_links
from docs.tools.module_map import package_imports
from docs.tools.pages import PAGES, GeneratedPage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
SITE = ROOT / "site"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.name)
def test_generated_page_is_up_to_date(page: GeneratedPage) -> None:
    """``python -m docs.tools`` would change nothing."""
    assert page.path.read_text(encoding="utf-8") == page.render()


def test_every_public_name_is_in_the_reference() -> None:
    """Once, on one of the pages of the Python interface or among the errors."""
    pages = [DOCS / "reference" / name for name in ("api.md", "stages.md", "errors.md")]
    told = re.findall(r"^::: minwise\.(?:\w+\.)?(\w+)$", "\n".join(map(read, pages)), re.MULTILINE)
    public = {name for name in mw.__all__ if name not in ("__version__", "UNICODE_VERSION")}
    assert public - set(told) == set()
    assert all(name in read(DOCS / "reference" / "stages.md") for name in ("__version__", "UNICODE_VERSION"))


def test_every_page_is_in_the_navigation() -> None:
    """The build says so too; here it is said without building."""
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    listed = set(re.findall(r"([\w./-]+\.md)$", SETTINGS, re.MULTILINE))
    assert pages - listed == set()


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/guides/deduplicate.md", "../../examples/newsroom/README.md", "../examples/newsroom/README.md"),
        ("docs/guides/deduplicate.md", "see-and-trust.md#x", "see-and-trust.md#x"),
        ("docs/index.md", "../DESIGN.md", "DESIGN.md"),
        ("docs/guides/records.md", "../../README.md#quality", "../overview.md#quality"),
        ("README.md", "docs/index.md", "index.md"),
        ("DESIGN.md", "docs/adr/0005-index.md", "adr/0005-index.md"),
        ("benchmarks/README.md", "../docs/guides/spark.md", "../guides/spark.md"),
        ("docs/index.md", "https://example.org/a", "https://example.org/a"),
        ("docs/index.md", "#below", "#below"),
    ],
)
def test_links_lead_to_where_files_are_in_the_site(page: str, link: str, expected: str) -> None:
    """The site has docs/ as its root, and what is outside of it beside."""
    assert rewrite_links(f"[a]({link})", PurePosixPath(page)) == f"[a]({expected})"


def test_links_in_code_are_left_alone() -> None:
    """They are no links."""
    code = "```\n[a](../../x.md)\n```\n"
    assert rewrite_links(code, PurePosixPath("docs/guides/index.md")) == code


@pytest.mark.parametrize("name", ["external_files", "docstrings"])
def test_tools_do_what_their_examples_say(name: str) -> None:
    """The doctests of what the site is built with."""
    if name == "docstrings":
        pytest.importorskip("griffe", reason="the extra docs is not installed")
    result = doctest.testmod(importlib.import_module(f"docs.tools.{name}"))
    assert (result.failed, result.attempted > 0) == (0, True)


def test_module_map_has_every_package() -> None:
    """Each module and package of the sources, and the kernel; Spark is imported only when it is used."""
    imports = package_imports()
    packages = {
        path.name.removesuffix(".py") for path in (ROOT / "src" / "minwise").iterdir() if path.suffix in ("", ".py")
    }
    packages = (packages - {"__init__", "__pycache__"}) | {"minwise", "_kernel"}
    assert set(imports.eager) == packages
    assert "spark" in imports.lazy["api"]
    assert not any("spark" in others for others in imports.eager.values())


@pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built; make docs builds it")
def test_the_site_loads_nothing_from_elsewhere() -> None:
    """No script, style, picture or font of another machine."""
    loading = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'> ]+""")
    found = {match[0] for page in SITE.rglob("*.html") for match in loading.finditer(read(page))}
    styles = {
        url for sheet in SITE.rglob("*.css") for url in re.findall(r"url\(['\"]?(?:https?:)?//[^)]+", read(sheet))
    }
    assert (found, styles) == (set(), set())


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")
