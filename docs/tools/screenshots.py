"""Screenshots of the README: ``python -m docs.tools.screenshots`` writes them into ``docs/assets``.

The report and the server page are those of the example corpus. Needs chromium, and the extras ``dev`` and ``server``.
The images are reduced to a palette, which makes them a quarter of the size without a visible difference.
"""

import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import minwise as mw

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"
CORPUS = ROOT / "examples" / "newsroom" / "docs.jsonl"
WIDTH, HEIGHT = 960, 640
COLOURS = 48


def main() -> None:
    """Write both screenshots."""
    with tempfile.TemporaryDirectory() as folder, _page() as page:
        _save(_report(page, Path(folder)), "report.png")
        _save(_server_page(page, Path(folder)), "server-page.png")


@contextmanager
def _page() -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        browser.close()


def _report(page: Page, folder: Path) -> bytes:
    """Return the top of the report of the run in the README."""
    mw.dedup(CORPUS, folder / "clean")
    page.goto((folder / "clean" / "report.html").as_uri())
    return page.screenshot()


def _server_page(page: Page, folder: Path) -> bytes:
    """Return the page with a text, its hits, and the first hit side by side with the text."""
    index = folder / "newsroom.mw"
    documents = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    with mw.Index.create(index, shingle="word:3", threshold=0.5, store_text=True) as opened:
        opened.add([row["id"] for row in documents], [row["text"] for row in documents])
    text = next(row["text"] for row in documents if row["id"] == "leek-soup-blog")
    with _serving(index) as address:
        page.goto(address)
        page.locator("#text").fill(text)
        page.get_by_role("button", name="leek-soup", exact=True).click()
        page.locator("#hits .opened .line").first.wait_for()
        page.evaluate("window.scrollTo(0, document.querySelector('#outcome').offsetTop + 10)")
        return page.screenshot()


@contextmanager
def _serving(index: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "minwise", "serve", "--index", str(index), "--port", "0", "--read-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        lines = iter(server.stdout.readline, "") if server.stdout is not None else iter(())
        yield next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        server.terminate()


def _save(image: bytes, name: str) -> None:
    reduced = Image.open(io.BytesIO(image)).convert("RGB").quantize(COLOURS)
    reduced.save(ASSETS / name, optimize=True)


if __name__ == "__main__":
    main()
