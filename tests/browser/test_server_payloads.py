"""Injection payloads in texts, ids, metadata, file names and URLs stay text on the server page.

The Content-Security-Policy is a second protection; each of the two is tested alone.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from server.running import Server, serving
from support.browser import Visit

import minwise as mw
from browser.conftest import Opener
from browser.server_page import drop, ready
from browser.test_payloads import PAYLOADS, protections, without_space

EVERY = "\n".join(PAYLOADS)
SHARED = " ".join(f"word{number}" for number in range(40))
# An id has at most 1,000 characters.
LONG_ID = " ".join(PAYLOADS)[:1000]
# Elements of the page itself; a payload would add some.
OWN = (
    "script, style, link, base, meta, img, iframe, object, embed, form, math, template, noscript, textarea, details, "
    "foreignObject"
)
LINK = re.compile(r"#[a-z]+|/[a-z./_]*")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve documents with payloads in all fields."""
    path = tmp_path_factory.mktemp("index") / "payloads.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True, seed=1) as index:
        index.add(
            [f"{payload} {number}" for number, payload in enumerate(PAYLOADS)],
            [f"{payload} {SHARED} {EVERY} {number}" for number, payload in enumerate(PAYLOADS)],
            [{payload: payload, "nested": [payload]} for payload in PAYLOADS],
        )
    with serving(path) as running:
        yield running


def made_of(visit: Visit) -> dict[str, int]:
    """Count the elements of each kind that could do harm."""
    tags = visit.all(OWN).evaluate_all("all => all.map(one => one.tagName.toLowerCase())")
    return {tag: tags.count(tag) for tag in sorted(set(tags))}


def assert_harmless(visit: Visit, own: dict[str, int], shown: list[str]) -> None:
    """Check that no payload ran or created an element, and that all text is shown."""
    visit.open_all()
    for name in ("mouseover", "focus", "toggle"):
        visit.all("*").evaluate_all("(all, name) => all.forEach(one => one.dispatchEvent(new Event(name)))", name)
    visit.page.wait_for_timeout(50)
    assert visit.page.evaluate("typeof pwned") == "undefined"
    assert made_of(visit) == own
    handlers = (
        "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on') || name === 'style')"
    )
    assert visit.all("*").evaluate_all(handlers) == []
    links = visit.all("[href], [src]").evaluate_all(
        "all => all.map(one => one.getAttribute('href') ?? one.getAttribute('src'))"
    )
    assert [one for one in links if not LINK.fullmatch(one)] == []
    seen = without_space(visit.one("body").text_content() or "")
    assert [one for one in shown if without_space(one) not in seen] == []


@protections
def test_payloads_in_hits_stay_text(go: Opener, server: Server, bypass_csp: bool) -> None:
    """In the query, in id, snippet and metadata of hits, and side by side."""
    visit = go(server.url, bypass_csp=bypass_csp)
    ready(visit)
    own = made_of(visit)
    visit.one("#most").fill("100")
    visit.one("#text").fill(f"{SHARED} {EVERY}")
    visit.wait_for("#outcome", f"{len(PAYLOADS)} near-duplicates")
    assert_harmless(visit, own, [f"{payload} {number}" for number, payload in enumerate(PAYLOADS)])
    assert_harmless(visit, own, [f"nested{json.dumps([one])}" for one in PAYLOADS])
    visit.all("#hits .toggle").first.click()
    visit.soon(".sides")
    visit.soon("#hits .opened .line")
    assert_harmless(visit, own, PAYLOADS)
    assert without_space(EVERY) in without_space("".join(visit.all(".sides .side:nth-child(2)").all_text_contents()))


@protections
def test_payloads_in_input_stay_text(go: Opener, server: Server, bypass_csp: bool) -> None:
    """In the name and content of a dropped file, in a new id and its metadata, and in the URL."""
    from playwright.sync_api import expect  # here, because these tests are skipped without it

    visit = go(server.url, "#<img src=x onerror=pwned=1>", bypass_csp=bypass_csp)
    ready(visit)
    own = made_of(visit)
    name = " ".join(PAYLOADS).replace("/", "\N{FULLWIDTH SOLIDUS}")
    drop(visit, name, EVERY.encode())
    visit.wait_for("#outcome", "near-duplicates among")
    visit.one("#adding summary").click()
    expect(visit.one("#new-id")).to_have_value(name[:1000])
    assert_harmless(visit, own, [name])
    visit.one("#new-id").fill(LONG_ID)
    visit.one("#new-metadata").fill(json.dumps({one: one for one in PAYLOADS}))
    visit.page.get_by_role("button", name="Add", exact=True).click()
    visit.wait_for("#added", "Added as")
    assert visit.one("#added bdi").get_attribute("title") == LONG_ID
    visit.wait_for("#hits strong", "1.0000")
    assert_harmless(visit, own, PAYLOADS[:3])
    assert server.ask("DELETE", "/v1/documents", {"ids": [LONG_ID]}).json["removed"] == 1


@protections
def test_payloads_in_the_document_list_stay_text(go: Opener, server: Server, bypass_csp: bool) -> None:
    """In an open document, before its removal, and in an error."""
    visit = go(server.url, "#documents", bypass_csp=bypass_csp)
    visit.refusals.add(404)
    ready(visit)
    own = made_of(visit)
    visit.one("#more").click()
    visit.all("#listed > li").nth(len(PAYLOADS) - 1).wait_for()
    assert_harmless(visit, own, [f"{payload} {number}" for number, payload in enumerate(PAYLOADS)])
    visit.all("#listed .toggle").last.click()
    visit.soon("#listed .opened .line")
    visit.page.get_by_role("button", name="Remove", exact=True).click()
    assert_harmless(visit, own, [json.dumps({PAYLOADS[0]: PAYLOADS[0]})[:-1], EVERY])
    missing: dict[str, Any] = server.get("/v1/documents/%3Cimg%20src=x%20onerror=pwned=1%3E").json
    visit.one("#wanted").fill("<img src=x onerror=pwned=1>")
    visit.one("#wanted").press("Enter")
    visit.wait_for("#documents-trouble", missing["error"]["message"])
    assert_harmless(visit, own, ["<img src=x onerror=pwned=1>"])
