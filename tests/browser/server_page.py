"""Helpers of the browser tests of the server page: an index, and actions of a user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from support.index_oracle import storing

import minwise as mw

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator
    from server.running import Server
    from support.browser import Visit

    from minwise.index import StoreName

# Size limit of a text, small enough that larger ones are sent quickly.
MOST_BYTES = 20_000
# Data of a dragged file.
DRAGGED = """([name, bytes]) => {
  const dragged = new DataTransfer();
  dragged.items.add(new File([new Uint8Array(bytes)], name));
  return dragged;
}"""
# Characters of two UTF-16 units, of several code points, and from right to left: the service counts code points.
FERRY = (
    "🚢🚢 The night ferry e\u0301\u0301 🧑‍🚀 will stop running at the end of October, "
    "the company said on Tuesday. عبارة 🛟 It is old."
)
CHANGED_FERRY = f"Before: 🎈 {FERRY.replace('Tuesday', 'Monday')} After."


def words(topic: str, count: int = 30) -> str:
    """Return a text that is similar to no text of another topic."""
    return " ".join(f"{topic}{number}" for number in range(count))


def filled(path: Path, store: StoreName = "text") -> Path:
    """Create an index with the same documents every time."""
    documents: list[tuple[str | int, str, dict[str, Any] | None]] = [
        ("ferry", FERRY, {"source": "wire", "year": 2025}),
        ("ferry-moved", f"{words('tide', 8)} It is old. {FERRY.removesuffix(' It is old.')}", None),
        (2**63 - 1, words("large"), {"number": 2**62 + 1, "nested": {"list": [1, "two", None]}}),
        ("a/b ?#%25 ü", words("slash"), None),
        *((f"filler-{number:02}", words(f"filler{number}x"), {"n": number}) for number in range(45)),
    ]
    with mw.Index.create(path, threshold=0.5, shingle="word:2", **storing(store), seed=1) as index:
        index.add([one[0] for one in documents], [one[1] for one in documents], [one[2] for one in documents])
    return path


def ready(visit: Visit) -> None:
    """Wait until the page has loaded the information about its index."""
    visit.page.locator("#asked-of:not(:empty)").wait_for(state="attached")


def has_focus(found: Locator) -> bool:
    """Return whether an element has the keyboard focus."""
    return bool(found.evaluate("one => one === document.activeElement"))


def ask(visit: Visit, text: str) -> None:
    """Type a text and wait for its near-duplicates."""
    with visit.page.expect_response("**/v1/query"):
        visit.one("#text").fill(text)
    visit.wait_for("#outcome", re.compile("near-duplicate"))


def open_hit(visit: Visit, name: str) -> None:
    """Open a hit and wait for both texts."""
    visit.page.get_by_role("button", name=name, exact=True).click()
    visit.soon("#hits .opened .line")


def queried(server: Server, text: str) -> list[dict[str, Any]]:
    """Return the hits of the service."""
    hits: list[dict[str, Any]] = server.post("/v1/query", {"text": text}).json["hits"]
    return hits


def drop(visit: Visit, name: str, content: bytes) -> None:
    """Drop a file on the page."""
    held = visit.page.evaluate_handle(DRAGGED, [name, list(content)])
    visit.page.dispatch_event("h1:visible", "dragenter", {"dataTransfer": held})
    visit.soon("#dropping")
    visit.page.dispatch_event("h1:visible", "drop", {"dataTransfer": held})


def add(visit: Visit, name: str, metadata: str = "", *, taken: str = "error", unique: bool = False) -> None:
    """Fill in the form and submit it."""
    if visit.one("#adding").get_attribute("open") is None:
        visit.one("#adding summary").click()
    visit.one("#new-id").fill(name)
    visit.one("#new-metadata").fill(metadata)
    visit.one("#id-taken").select_option(taken)
    visit.one("#unique").set_checked(unique)
    visit.page.get_by_role("button", name="Add", exact=True).click()
