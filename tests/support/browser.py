"""A page that is open in the browser, and everything it did that can be heard of."""

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
        address: Where it came from.
        requests: Every address that was asked for.
        complaints: Errors, warnings and messages of the console, dialogs, and windows that were opened.
        refusals: Statuses that a server is meant to refuse with; a browser complains about each of them.
    """

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refusals: set[int] = field(default_factory=set)

    @classmethod
    def to(cls, context: BrowserContext, address: str, view: str = "") -> Visit:
        """Opens an address, or what stands below it."""
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
        """Closes the page; nothing but what is at its address was asked for, and nothing was complained about."""
        self.page.close()
        assert [one for one in self.requests if not one.startswith(("blob:", self.address))] == []
        assert any(one.startswith(self.address) for one in self.requests)
        refused = tuple(
            f"Failed to load resource: the server responded with a status of {one}" for one in self.refusals
        )
        assert [one for one in self.complaints if not one.startswith(refused)] == []

    def all(self, selector: str) -> Locator:
        """Every element of a kind."""
        return self.page.locator(selector)

    def one(self, selector: str) -> Locator:
        """The only element of a kind."""
        found = self.page.locator(selector)
        assert found.count() == 1
        return found

    def soon(self, selector: str) -> Locator:
        """The only element of a kind, once it is there to see."""
        found = self.page.locator(selector)
        found.wait_for()
        return found

    def wait_for(self, selector: str, text: str | re.Pattern[str]) -> Locator:
        """The element of a kind that has a text, once there is one to see."""
        found = self.page.locator(selector).filter(has_text=text).first
        found.wait_for()
        return found

    def value(self, selector: str) -> float:
        """The number that an element carries, which is also the one that is seen."""
        found = self.all(f"{selector} data").first
        carried = json.loads(found.get_attribute("value") or "")
        assert found.inner_text() == f"{carried:,}"
        return float(carried)

    def open_all(self) -> None:
        """Opens whatever can be opened."""
        self.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")

    def tick(self, count: int | None = None) -> None:
        """Ticks documents, the first ones or all."""
        self.open_all()
        boxes = self.all("input[type=checkbox]")
        for place in range(boxes.count() if count is None else count):
            boxes.nth(place).check()

    def downloaded(self) -> tuple[str, bytes]:
        """Name and content of the list of ids."""
        with self.page.expect_download() as waiting:
            self.page.get_by_role("button", name="download list").click()
        return waiting.value.suggested_filename, waiting.value.path().read_bytes()
