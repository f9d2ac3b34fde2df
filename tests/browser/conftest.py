"""A browser for the tests: Debian's chromium, driven by Playwright. Without them the tests are skipped and say so."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from server.running import Server, serving
from support.browser import Visit

from browser.server_page import MOST_BYTES, filled

# The browser itself must not talk to anybody either, or it would hide a page that does.
QUIET = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# Pages come one after another: a process of its own for each takes a sixth of the time that it takes to open one.
ONE_BY_ONE = ["--renderer-process-limit=1"]

Opener = Callable[..., Visit]


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for all tests of this folder."""
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
    """Contexts by what the browser is told. To make one takes as long as to open a page, and no page keeps anything."""
    made: dict[str, Any] = {}

    def context(**options: Any) -> Any:  # noqa: ANN401 - whatever the browser can be told
        told = json.dumps(options, sort_keys=True)
        if told not in made:
            made[told] = browser.new_context(**options)
        return made[told]

    return context


@pytest.fixture
def go(context_of: Callable[..., Any]) -> Iterator[Opener]:
    """Opens an address; whatever the page complained about, or asked of others, fails the test."""
    visits: list[Visit] = []

    def open_address(address: str, view: str = "", **context: Any) -> Visit:  # noqa: ANN401 - what the browser is told
        visits.append(Visit.to(context_of(**context), address, view))
        return visits[-1]

    yield open_address
    for one in visits:
        one.end()


@pytest.fixture
def visit(go: Opener, tmp_path: Path) -> Opener:
    """Opens a page as by double click, given as a file or as its text."""
    count = 0

    def open_page(page: Path | str, **context: Any) -> Visit:  # noqa: ANN401 - what the browser is told
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
