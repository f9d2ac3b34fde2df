"""Browser fixtures: Debian's chromium, driven by Playwright. Tests are skipped if either is missing."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from server.running import Server, serving
from support.browser import Visit

from browser.server_page import MOST_BYTES, filled

# The browser itself sends no requests either, which would hide those of a page.
QUIET = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# Pages are opened one at a time: a separate process for each would take a sixth of the time to open one.
ONE_BY_ONE = ["--renderer-process-limit=1"]

Opener = Callable[..., Visit]


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Start one browser for all tests of this folder."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=chromium, args=[*QUIET, *ONE_BY_ONE])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def context_of(browser: Any) -> Callable[..., Any]:  # noqa: ANN401 - its type needs playwright
    """Return a function that returns a context by its options; creating one takes as long as opening a page."""
    made: dict[str, Any] = {}

    def context(**options: Any) -> Any:  # noqa: ANN401 - options of playwright
        key = json.dumps(options, sort_keys=True)
        if key not in made:
            made[key] = browser.new_context(**options)
        return made[key]

    return context


@pytest.fixture
def go(context_of: Callable[..., Any]) -> Iterator[Opener]:
    """Return a function that opens an address; errors and foreign requests of the page fail the test."""
    visits: list[Visit] = []

    def open_address(address: str, view: str = "", **context: Any) -> Visit:  # noqa: ANN401 - options of playwright
        visits.append(Visit.to(context_of(**context), address, view))
        return visits[-1]

    yield open_address
    for opened in visits:
        opened.end()


@pytest.fixture
def visit(go: Opener, tmp_path: Path) -> Opener:
    """Return a function that opens a page from disk, given as a file or as its HTML."""
    count = 0

    def open_page(page: Path | str, **context: Any) -> Visit:  # noqa: ANN401 - options of playwright
        nonlocal count
        path = page if isinstance(page, Path) else tmp_path / f"page-{count}.html"
        if isinstance(page, str):
            path.write_text(page, encoding="utf-8")
            count += 1
        return go(path.resolve().as_uri(), **context)

    return open_page


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that lets everybody do everything; a test that changes something uses words of its own."""
    index = filled(tmp_path_factory.mktemp("index") / "news.mw")
    with serving(index, "--max-document", str(MOST_BYTES)) as running:
        yield running
