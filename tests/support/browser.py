"""A page in the browser, with the requests and errors that it caused."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

__all__ = ["Visit"]


@dataclass
class Visit:
    """An open page.

    Attributes:
        page: The page.
        address: Its address.
        requests: Every address that was requested.
        complaints: Console messages, errors, dialogs and opened windows.
        refusals: Expected error statuses of the server; the browser logs each of them.
    """

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refusals: set[int] = field(default_factory=set)

    @classmethod
    def to(cls, context: BrowserContext, address: str, view: str = "") -> Visit:
        """Open an address, followed by the path of a view."""
        visit = cls(context.new_page(), address)
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.on("popup", lambda opened: visit.complaints.append(f"window: {opened.url}"))
        visit.page.on("console", lambda message: visit.complaints.append(message.text))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("dialog", visit._refuse)
        visit.page.set_default_timeout(20_000)
        visit.page.goto(f"{address}{view}")
        return visit

    def _refuse(self, dialog: Any) -> None:  # noqa: ANN401 - its type needs playwright
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def end(self) -> None:
        """Close the page; assert that it requested only its own address and that there were no complaints."""
        self.page.close()
        assert [url for url in self.requests if not url.startswith(("blob:", self.address))] == []
        assert any(url.startswith(self.address) for url in self.requests)
        refused = tuple(
            f"Failed to load resource: the server responded with a status of {status}" for status in self.refusals
        )
        assert [complaint for complaint in self.complaints if not complaint.startswith(refused)] == []

    def all(self, selector: str) -> Locator:
        """Return every element of a selector."""
        return self.page.locator(selector)

    def one(self, selector: str) -> Locator:
        """Return the only element of a selector."""
        found = self.page.locator(selector)
        assert found.count() == 1
        return found

    def soon(self, selector: str) -> Locator:
        """Wait for the only element of a selector to be visible; return it."""
        found = self.page.locator(selector)
        found.wait_for()
        return found

    def wait_for(self, selector: str, text: str | re.Pattern[str]) -> Locator:
        """Wait for a visible element of a selector with a text; return it."""
        found = self.page.locator(selector).filter(has_text=text).first
        found.wait_for()
        return found

    def value(self, selector: str) -> float:
        """Return the value of a ``data`` element; assert that its text shows the same number."""
        found = self.all(f"{selector} data").first
        value = json.loads(found.get_attribute("value") or "")
        assert found.inner_text() == f"{value:,}"
        return float(value)

    def open_all(self) -> None:
        """Open every collapsed element."""
        self.page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")

    def select(self, count: int | None = None) -> None:
        """Check the boxes of the first documents, or of all."""
        self.open_all()
        boxes = self.all("input[type=checkbox]")
        for number in range(boxes.count() if count is None else count):
            boxes.nth(number).check()

    def downloaded(self) -> tuple[str, bytes]:
        """Download the list of ids; return its name and content."""
        with self.page.expect_download() as waiting:
            self.page.get_by_role("button", name="download list").click()
        return waiting.value.suggested_filename, waiting.value.path().read_bytes()
