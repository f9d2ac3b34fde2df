"""Generated pages, names in pages, navigation and links of the site."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path, PurePosixPath

import pytest

from docs.tools.external_files import rewrite_links
from docs.tools.module_map import package_imports
from docs.tools.pages import PAGES, GeneratedPage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
SITE = ROOT / "site"
# Packages with documented names; minwise.reference is documented by module.
PUBLIC_PACKAGES = (
    "minwise",
    "minwise.comparison",
    "minwise.errors",
    "minwise.index",
    "minwise.inputs",
    "minwise.progress",
    "minwise.results",
    "minwise.server",
    "minwise.sketches",
    "minwise.spark",
    "minwise.text",
    "minwise.vectors",
)
PROSE_PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "DESIGN", "CONTRIBUTING", "SECURITY")),
]
NAMED_FILE = re.compile(r"`([\w./-]+(?:\.(?:py|rs|md|toml|js)|/))`")
# Directories that only make writes, and the settings file of a user.
NOT_IN_REPOSITORY = {"dist/", "site/", "minwise.toml"}
DOTTED_NAME = re.compile(r"(?<![\w./@:-])(?:minwise|mw)(?:\.(?!toml\b)[A-Za-z_]\w*)+(?![\w/-])")


def page_name(page: Path) -> str:
    """Return the id of a page in the output of a test."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.name)
def test_generated_page_is_up_to_date(page: GeneratedPage) -> None:
    """``python -m docs.tools`` updates the pages."""
    assert page.path.read_text(encoding="utf-8") == page.render()


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    """Classes and functions have generated sections; constants are named in the text."""
    text = "\n".join(read(DOCS / "reference" / name) for name in ("api.md", "stages.md", "errors.md"))
    documented = set(re.findall(r"^::: minwise\.(?:\w+\.)*(\w+)$|`minwise\.\w+\.([A-Z_]+)`", text, re.MULTILINE))
    assert set(importlib.import_module(package).__all__) - {name for names in documented for name in names} == set()


def test_public_packages_are_listed_in_the_reference() -> None:
    listed = re.findall(r"^\| `(minwise[\w.]*)` \|", read(DOCS / "reference" / "api.md"), re.MULTILINE)
    assert set(listed) == {*PUBLIC_PACKAGES, "minwise.reference", "minwise.api"}


@pytest.mark.parametrize("page", PROSE_PAGES, ids=page_name)
def test_files_named_in_page_exist(page: Path) -> None:
    roots = [page.parent, *(ROOT / name for name in ("", "src", "src/minwise", "crates/kernel/src"))]
    named = set(NAMED_FILE.findall(read(page))) - NOT_IN_REPOSITORY
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("page", PROSE_PAGES, ids=page_name)
def test_python_names_in_page_exist(page: Path) -> None:
    names = set(DOTTED_NAME.findall(read(page)))
    assert [name for name in sorted(names) if not exists(re.sub(r"^mw\b", "minwise", name))] == []


def test_design_and_contributing_name_many_files() -> None:
    """So that the patterns above match what these pages contain."""
    assert all(len(NAMED_FILE.findall(read(ROOT / name))) > 10 for name in ("DESIGN.md", "CONTRIBUTING.md"))


def test_design_names_the_tests_of_every_promise() -> None:
    """That the named files exist is tested above."""
    section = read(ROOT / "DESIGN.md").split("## 2. Promises", 1)[1].split("\n## ", 1)[0]
    promises = set(re.findall(r"^(\d)\. \*\*", section, re.MULTILINE))
    tested = set(re.findall(r"^\| (\d) \| .*`tests/[\w/]+\.py`", section, re.MULTILINE))
    assert len(promises) >= 7
    assert tested == promises


def exists(dotted: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_page_is_in_the_navigation() -> None:
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
def test_links_are_rewritten_to_paths_in_the_site(page: str, link: str, expected: str) -> None:
    """The root of the site is docs/, with copies of files from outside it."""
    assert rewrite_links(f"[a]({link})", PurePosixPath(page)) == f"[a]({expected})"


def test_links_in_code_are_not_rewritten() -> None:
    code = "```\n[a](../../x.md)\n```\n"
    assert rewrite_links(code, PurePosixPath("docs/guides/index.md")) == code


@pytest.mark.parametrize("name", ["external_files", "docstrings"])
def test_doctests_of_tools_pass(name: str) -> None:
    if name == "docstrings":
        pytest.importorskip("griffe", reason="the extra docs is not installed")
    result = doctest.testmod(importlib.import_module(f"docs.tools.{name}"))
    assert (result.failed, result.attempted > 0) == (0, True)


def test_module_map_has_every_package() -> None:
    """Spark is imported only on first use."""
    imports = package_imports()
    packages = {
        path.name.removesuffix(".py") for path in (ROOT / "src" / "minwise").iterdir() if path.suffix in ("", ".py")
    }
    packages = (packages - {"__init__", "__pycache__"}) | {"minwise", "_kernel"}
    assert set(imports.eager) == packages
    assert "spark" in imports.lazy["api"]
    assert not any("spark" in others for others in imports.eager.values())


@pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built; run make docs")
def test_site_loads_nothing_from_other_hosts() -> None:
    loading = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^"'> ]+""")
    found = {match[0] for page in SITE.rglob("*.html") for match in loading.finditer(read(page))}
    styles = {
        url for sheet in SITE.rglob("*.css") for url in re.findall(r"url\(['\"]?(?:https?:)?//[^)]+", read(sheet))
    }
    assert (found, styles) == (set(), set())


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")
