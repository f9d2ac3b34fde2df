"""A browser for the tests: Debian's chromium, driven by Playwright. Without them the tests are skipped and say so."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.visit import Visit

# The browser itself must not talk to anybody either, or it would hide a page that does.
QUIET = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

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
        launched = driver.chromium.launch(executable_path=chromium, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Opener]:  # noqa: ANN401 - its type needs playwright
    """Opens a page, given as a file or as its text; whatever it complained about or asked for fails the test."""
    visits: list[Visit] = []

    def open_page(page: Path | str, **context: Any) -> Visit:  # noqa: ANN401 - whatever the browser can be told
        if isinstance(page, str):
            path = tmp_path / f"page-{len(visits)}.html"
            path.write_text(page, encoding="utf-8")
        else:
            path = page
        visits.append(Visit.of(browser.new_context(**context), path))
        return visits[-1]

    yield open_page
    for one in visits:
        one.end()
