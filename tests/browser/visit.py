"""A page that is open in the browser, and everything it did that can be heard of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Locator, Page

__all__ = ["Visit"]


@dataclass
class Visit:
    """An open page.

    Attributes:
        page: The page.
        address: Where it came from.
        requests: Every address that was asked for.
        complaints: Errors, warnings and messages of the console, and dialogs.
    """

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: BrowserContext, path: Path) -> Visit:
        """Opens a file as by double click."""
        visit = cls(context.new_page(), path.resolve().as_uri())
        context.on("request", lambda request: visit.requests.append(request.url))
        visit.page.on("console", lambda message: visit.complaints.append(message.text))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("dialog", visit._refuse)
        visit.page.set_default_timeout(20_000)
        visit.page.goto(visit.address)
        return visit

    def _refuse(self, dialog: Any) -> None:  # noqa: ANN401 - its type needs playwright
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def end(self) -> None:
        """Closes the page; nothing but the file itself was asked for, and nothing was complained about."""
        self.page.context.close()
        assert [one for one in self.requests if not one.startswith(("blob:", self.address))] == []
        assert self.requests.count(self.address) >= 1
        assert self.complaints == []

    def all(self, selector: str) -> Locator:
        """Every element of a kind."""
        return self.page.locator(selector)

    def one(self, selector: str) -> Locator:
        """The only element of a kind."""
        found = self.page.locator(selector)
        assert found.count() == 1
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
