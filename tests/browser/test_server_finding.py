"""Search view of the server page: finding, comparing, adding and removing documents, and errors."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from server.running import Server, serving

import minwise as mw
from browser.conftest import Opener
from browser.server_page import (
    CHANGED_FERRY,
    FERRY,
    MOST_BYTES,
    add,
    ask,
    drop,
    has_focus,
    open_hit,
    queried,
    ready,
    words,
)

# Data of a dragged text.
DRAGGED_TEXT = """text => {
  const dragged = new DataTransfer();
  dragged.setData("text/plain", text);
  return dragged;
}"""
# Delays reading files of that name until `finishReading` is called.
SLOW = """() => {
  const read = Blob.prototype.arrayBuffer;
  let waiting = null;
  Blob.prototype.arrayBuffer = async function () {
    if (this.name === "slow.txt") await new Promise((resolve) => (waiting = resolve));
    return read.call(this);
  };
  window.finishReading = async () => {
    waiting();
    await read.call(new Blob(["another"]));
    await new Promise((resolve) => setTimeout(resolve));
  };
}"""
# Sets a field to a text that ends with an unpaired surrogate.
SET_WITH_SURROGATE = """([id, text]) => {
  document.getElementById(id).value = `${text}\\ud83c`;
  document.getElementById(id).dispatchEvent(new InputEvent("input"));
}"""


# Search


def test_a_pasted_text_shows_its_near_duplicates(go: Opener, server: Server) -> None:
    """With similarity, id, metadata and a snippet with marked passages, for any script."""
    visit = go(server.url, permissions=["clipboard-read", "clipboard-write"])
    ready(visit)
    visit.page.evaluate("text => navigator.clipboard.writeText(text)", CHANGED_FERRY)
    visit.one("#text").focus()
    visit.page.keyboard.press("Control+V")
    visit.wait_for("#outcome", "2 near-duplicates")
    hits = queried(server, CHANGED_FERRY)
    assert visit.all("#hits h2").all_inner_texts() == [str(hit["id"]) for hit in hits]
    assert visit.all("#hits strong").all_inner_texts() == [
        f"{int(hit['similarity'] * 10_000) / 10_000:.4f}" for hit in hits
    ]
    assert visit.all("#hits dl").first.inner_text().split() == ["source", "wire", "year", "2025"]
    for place, hit in enumerate(hits):
        marks = visit.all("#hits > li").nth(place).locator(".snippet mark").all_text_contents()
        assert marks == [hit["snippet"]["text"][start:end] for start, end in hit["snippet"]["spans"]]
        assert any("🧑‍🚀" in mark for mark in marks)
        shown = visit.all("#hits > li").nth(place).locator(".snippet").text_content() or ""
        whole = server.get(f"/v1/documents/{hit['id']}").json["text"]
        assert shown.removeprefix("… ").removesuffix(" …") == hit["snippet"]["text"]
        assert shown.endswith(" …") == (not whole.endswith(hit["snippet"]["text"]))


def test_typing_shows_the_hits_of_the_current_text(go: Opener, server: Server) -> None:
    """A late response to an earlier text is dropped."""
    visit = go(server.url)
    ready(visit)
    held: list[Any] = []
    gone: list[str] = []
    visit.page.on("requestfailed", lambda request: gone.append(request.post_data or ""))
    visit.page.route("**/v1/query", lambda route: route.continue_() if held else held.append(route))
    with visit.page.expect_request("**/v1/query"):
        visit.one("#text").fill(FERRY)
    visit.one("#text").press_sequentially(" more of it", delay=1)
    visit.wait_for("#hits h2", "ferry")
    assert visit.one("#text-size").inner_text().startswith(f"{len(FERRY) + 11} characters")
    assert [json.loads(one)["text"] for one in gone] == [FERRY]


def test_threshold_hit_count_and_clear_button(go: Opener, server: Server) -> None:
    """The slider starts at the threshold of the index, which is also the minimum."""
    visit = go(server.url)
    ask(visit, CHANGED_FERRY)
    assert visit.one("#least").get_attribute("min") == "0.5"
    for field, wrong, before in (("#least-number", "0.2", "0.5"), ("#most", "0", "10")):
        visit.one(field).fill(wrong)
        visit.one(field).blur()
        assert visit.one(field).input_value() == before
    first, second = (hit["similarity"] for hit in queried(server, CHANGED_FERRY))
    assert first > second
    visit.one("#most").fill("1")
    visit.wait_for("#outcome", "1 near-duplicate")
    visit.one("#most").fill("10")
    visit.wait_for("#outcome", "2 near-duplicates")
    visit.one("#least-number").fill(f"{(first + second) / 2:.4f}")
    visit.wait_for("#outcome", "1 near-duplicate")
    visit.one("#least").focus()
    visit.page.keyboard.press("End")
    visit.wait_for("#outcome", "No near-duplicate")
    assert visit.one("#least-number").input_value() == "1"
    visit.page.get_by_role("button", name="Clear").click()
    visit.page.locator("#outcome:empty").wait_for(state="attached")
    assert has_focus(visit.one("#text"))


def test_a_dropped_file_becomes_the_query(go: Opener, server: Server) -> None:
    """In any view; its name is the default id."""
    visit = go(server.url, "#index")
    visit.wait_for("#figures", "documents")
    drop(visit, "ferry.txt", CHANGED_FERRY.encode())
    visit.wait_for("#outcome", "2 near-duplicates")
    assert visit.one("#text").input_value() == CHANGED_FERRY
    assert visit.one("#text-size").inner_text() == f"{len(CHANGED_FERRY)} characters from ferry.txt"
    visit.one("#adding summary").click()
    assert visit.one("#new-id").input_value() == "ferry.txt"
    assert visit.one("#dropping").is_hidden()


def test_a_dropped_text_becomes_the_query(go: Opener, server: Server) -> None:
    """Also if the event target is not an element. The drop hint stays until the page is left."""
    visit = go(server.url)
    ready(visit)
    held = visit.page.evaluate_handle(DRAGGED_TEXT, CHANGED_FERRY)
    for name, target, shown in (
        ("dragenter", "body", True),
        ("dragenter", "#find", True),
        ("dragleave", "body", True),
        ("dragenter", "#find-name", True),
        ("dragleave", "#find", True),
        ("dragleave", "#find-name", False),
        ("dragenter", "body", True),
    ):
        # Without relatedTarget, as in browsers that do not set it.
        visit.page.dispatch_event(target, name, {"dataTransfer": held})
        assert visit.one("#dropping").is_visible() == shown, (name, target)
    dropped = "held => document.dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true}))"
    visit.page.evaluate(dropped, held)
    visit.wait_for("#outcome", "2 near-duplicates")
    assert visit.one("#text").input_value() == CHANGED_FERRY
    assert visit.one("#dropping").is_hidden()


def test_a_slow_file_does_not_replace_later_input(go: Opener, server: Server) -> None:
    visit = go(server.url)
    ready(visit)
    visit.page.evaluate(SLOW)
    drop(visit, "slow.txt", FERRY.encode())
    drop(visit, "quick.txt", CHANGED_FERRY.encode())
    visit.wait_for("#outcome", "2 near-duplicates")
    visit.page.evaluate("finishReading()")
    assert visit.one("#text").input_value() == CHANGED_FERRY
    assert visit.one("#text-size").inner_text() == f"{len(CHANGED_FERRY)} characters from quick.txt"
    drop(visit, "slow.txt", FERRY.encode())
    ask(visit, words("typed"))
    visit.page.evaluate("finishReading()")
    assert visit.one("#text").input_value() == words("typed")
    drop(visit, "slow.txt", FERRY.encode())
    visit.page.evaluate("finishReading()")
    visit.wait_for("#text-size", "from slow.txt")
    assert visit.one("#text").input_value() == FERRY


def test_a_chosen_file_becomes_the_query(go: Opener, server: Server) -> None:
    """An invalid file is not sent, and the page shows why."""
    visit = go(server.url)
    ready(visit)
    for content, message in (
        (b"x" * (MOST_BYTES + 1), "it.txt has 20 kB; this server accepts texts of up to 20 kB."),
        (b"\xff\xfe\x00", "it.txt is not UTF-8 text."),
        (CHANGED_FERRY.encode(), ""),
    ):
        with visit.page.expect_file_chooser() as chooser:
            visit.page.get_by_role("button", name="Choose a file…").click()
        chooser.value.set_files({"name": "it.txt", "mimeType": "text/plain", "buffer": content})
        if message:
            visit.wait_for("#find-trouble", message)
            assert [one for one in visit.requests if one.endswith("/v1/query")] == []
    visit.wait_for("#outcome", "2 near-duplicates")
    assert visit.one("#find-trouble").is_hidden()


@pytest.mark.parametrize("browser_has_it", [True, False])
def test_unpaired_surrogates_are_replaced(go: Opener, server: Server, browser_has_it: bool) -> None:
    """In queries, comparisons, added texts and ids."""
    visit = go(server.url)
    if not browser_has_it:
        visit.page.add_init_script("delete String.prototype.toWellFormed")
        visit.page.reload()
    ready(visit)
    visit.page.evaluate(SET_WITH_SURROGATE, ["text", CHANGED_FERRY])
    visit.wait_for("#outcome", "2 near-duplicates")
    assert visit.one("#text-size").inner_text() == f"{len(CHANGED_FERRY) + 1} characters"
    open_hit(visit, "ferry")
    assert visit.all(".sides .side:first-child").last.inner_text().endswith("\N{REPLACEMENT CHARACTER}")
    visit.one("#adding summary").click()
    visit.page.evaluate(SET_WITH_SURROGATE, ["new-id", "half"])
    visit.page.get_by_role("button", name="Add", exact=True).click()
    visit.wait_for("#added", "Added as half\N{REPLACEMENT CHARACTER}.")
    stored = server.get("/v1/documents/half%EF%BF%BD").json
    assert stored["text"] == f"{CHANGED_FERRY}\N{REPLACEMENT CHARACTER}"
    assert server.ask("DELETE", "/v1/documents/half%EF%BF%BD").status == 200


@pytest.mark.parametrize(
    ("max_bucket", "most", "reason"),
    [
        (64, 10, "These are the most similar ones; there may be more. Raise “At most” to see more."),
        (64, 40, "These are the most similar ones; there may be more. Raise “At most” to see more."),
        (64, 41, None),
        (
            16,
            10,
            "more than 16 documents, or 16,384 removed ones, share a band with the text, and not all were searched.",
        ),
    ],
)
def test_an_answer_that_was_cut_short_says_why_and_what_to_do(
    go: Opener, tmp_path: Path, max_bucket: int, most: int, reason: str | None
) -> None:
    text = words("copied", 100)
    with mw.Index.create(tmp_path / "news.mw", shingle="word:2", store_text=True, max_bucket=max_bucket) as index:
        index.add(range(40), [f"{text} {number}" for number in range(40)])
    with serving(tmp_path / "news.mw", "--read-only") as running:
        visit = go(running.url)
        ready(visit)
        visit.one("#most").fill(str(most))
        ask(visit, text)
        if reason is None:
            assert visit.one("#cut").inner_text() == ""
        else:
            visit.wait_for("#cut", reason)


def send_with(route: Any, **fields: int) -> None:  # noqa: ANN401 - a route of Playwright
    """Send a request with other values of some fields."""
    route.continue_(post_data=json.dumps(json.loads(route.request.post_data) | fields))


@pytest.mark.parametrize(
    ("compared", "reason"), [(5, "35 more candidates were not compared."), (39, "1 more candidate was not compared.")]
)
def test_an_answer_that_was_cut_short_says_how_many_candidates_were_left_out(
    go: Opener, tmp_path: Path, compared: int, reason: str
) -> None:
    """The page has no field for ``max_candidates``, so the test adds it to the request."""
    text = words("copied", 100)
    with mw.Index.create(tmp_path / "news.mw", shingle="word:2", store_text=True) as index:
        index.add(range(40), [f"{text} {number}" for number in range(40)])
    with serving(tmp_path / "news.mw", "--read-only") as running:
        visit = go(running.url)
        ready(visit)
        visit.page.route("**/v1/query", partial(send_with, top=100, max_candidates=compared))
        ask(visit, text)
        visit.wait_for("#cut", f"Hits may be missing: {reason} Add words that only the wanted documents have.")


# Side by side


@pytest.mark.parametrize("name", ["ferry", "ferry-moved"])
def test_both_texts_are_shown_side_by_side(go: Opener, server: Server, name: str) -> None:
    """Completely; moved passages and what only one text has are marked, shared passages are not."""
    visit = go(server.url)
    ask(visit, CHANGED_FERRY)
    open_hit(visit, name)
    stored = server.get(f"/v1/documents/{name}").json["text"]
    rows = server.post("/v1/compare", {"left": CHANGED_FERRY, "right": stored, "rows": True}).json["rows"]
    for side, (key, text) in enumerate((("left", CHANGED_FERRY), ("right", stored))):
        shown = visit.all(f".sides .pair:not(.names) .side:nth-child({side + 1})")
        assert "".join(shown.all_text_contents()) == text
        for kind, selector in (("shared", "span.shared"), ("moved", "mark.moved"), ("only", "mark.only")):
            wanted = [piece["text"] for row in rows for piece in row[key] if piece["kind"] == kind]
            assert shown.locator(selector).all_text_contents() == wanted
    assert visit.all(".sides mark.moved").count() == (2 if name == "ferry-moved" else 0)
    assert visit.all(".sides .names .side").all_inner_texts() == ["your text", name]


def test_a_hit_stays_open_while_the_text_changes(go: Opener, server: Server) -> None:
    """The comparison is updated and the focus stays; then the hit becomes the query."""
    visit = go(server.url)
    ask(visit, CHANGED_FERRY)
    open_hit(visit, "ferry")
    visit.one("#text").press_sequentially(" Unheard.")
    visit.wait_for(".sides .side:first-child", "Unheard.")
    assert has_focus(visit.one("#text"))
    assert visit.all("#hits .opened:visible").count() == 1
    visit.page.get_by_role("button", name="Find its near-duplicates").click()
    visit.wait_for("#hits strong", "1.0000")
    assert visit.one("#text").input_value() == FERRY


def test_obsolete_comparisons_are_aborted(go: Opener, server: Server) -> None:
    """When the text changes, or the hit is closed or another one opened; at most one is in progress."""
    visit = go(server.url)
    ask(visit, CHANGED_FERRY)
    begun: list[Any] = []
    ended: list[Any] = []
    visit.page.on("requestfailed", lambda request: ended.append(request))
    visit.page.on("request", lambda request: begun.append(request) if request.url.endswith("/v1/compare") else None)
    visit.page.route("**/v1/compare", lambda _: None)  # never answered

    def compared(act: Callable[[], object], left: str) -> None:
        """Start a comparison, and check that it is the only one in progress."""
        with visit.page.expect_request("**/v1/compare"):
            act()
        assert visit.all("#hits .opened:visible").count() == 1
        assert json.loads(begun[-1].post_data)["left"] == left
        assert ended == begun[:-1]

    def dropped(act: Callable[[], object]) -> None:
        """Do something that aborts the comparison."""
        with visit.page.expect_event("requestfailed"):
            act()
        assert ended == begun

    ferry, moved = (visit.page.get_by_role("button", name=one, exact=True) for one in ("ferry", "ferry-moved"))
    compared(ferry.click, CHANGED_FERRY)
    for less in (CHANGED_FERRY.removeprefix("Before: "), CHANGED_FERRY.removesuffix(" After.")):
        compared(partial(visit.one("#text").fill, less), less)
    compared(moved.click, less)
    assert ferry.get_attribute("aria-expanded") == "false"
    dropped(partial(moved.press, "Escape"))
    compared(moved.click, less)
    dropped(moved.click)
    compared(ferry.click, less)
    dropped(visit.page.get_by_role("button", name="Clear").click)
    assert len(begun) == 6
    visit.page.unroute("**/v1/compare")
    ask(visit, CHANGED_FERRY)
    assert visit.all("#hits .opened:visible").count() == 0
    open_hit(visit, "ferry")


# Adding and removing


def test_a_text_is_added(go: Opener, server: Server) -> None:
    """With an integer that JavaScript cannot represent."""
    visit = go(server.url)
    ask(visit, words("added"))
    add(visit, "added", '{"number": 9007199254740993}')
    visit.wait_for("#added", "Added as added.")
    visit.wait_for("#outcome", "1 near-duplicate")
    assert server.get("/v1/documents/added").json["metadata"] == {"number": 9_007_199_254_740_993}
    assert server.get("/v1/documents/added").json["text"] == words("added")
    visit.wait_for("#hits dd", "9007199254740993")
    add(visit, "added", '{"number": 9007199254740993}')
    visit.wait_for("#added", "the same text is already stored as added.")


def test_a_taken_id_is_reported_kept_or_replaced(go: Opener, server: Server) -> None:
    """The error message is that of the service."""
    server.add("taken", words("old"))
    visit = go(server.url)
    visit.refusals.add(409)
    ask(visit, words("new"))
    add(visit, "taken")
    said = server.add("taken", words("new")).json["error"]["message"]
    visit.wait_for("#add-trouble", said)
    add(visit, "taken", taken="skip")
    visit.wait_for("#added.refused", "the old text keeps the id taken.")
    assert server.get("/v1/documents/taken").json["text"] == words("old")
    add(visit, "taken", taken="replace")
    visit.wait_for("#added", "in place of the old text")
    assert server.get("/v1/documents/taken").json["text"] == words("new")


def test_a_near_duplicate_is_not_added_if_unique(go: Opener, server: Server) -> None:
    """The page names the stored document."""
    visit = go(server.url)
    ask(visit, CHANGED_FERRY)
    add(visit, "near-copy", unique=True)
    similarity = queried(server, CHANGED_FERRY)[0]["similarity"]
    visit.wait_for(
        "#added.refused",
        f"Not added: it is {int(similarity * 10_000) / 10_000:.4f} similar to ferry, which is already stored.",
    )
    assert server.get("/v1/documents/near-copy").status == 404
    visit.one("#text").fill(words("unheard"))
    assert visit.one("#added").inner_text() == ""
    add(visit, "unheard", unique=True)
    visit.wait_for("#added", "Added as unheard.")


def test_metadata_must_be_an_object(go: Opener, server: Server) -> None:
    """Neither other metadata nor a document without text is sent."""
    visit = go(server.url)
    ready(visit)
    add(visit, "meta")
    visit.wait_for("#add-trouble", "There is no text to add")
    ask(visit, words("meta"))
    for metadata in ("[1]", "{", "null", '"a"', "1", "{'a': 1}"):
        add(visit, "meta", metadata)
        visit.wait_for("#add-trouble", "Metadata must be a JSON object")
        visit.one("#text").press_sequentially("x")
        assert visit.one("#add-trouble").is_hidden()
    assert server.get("/v1/documents/meta").status == 404


def test_a_hit_is_removed_after_confirmation(go: Opener, server: Server) -> None:
    """Escape and No keep it."""
    server.add("unloved", words("unloved"))
    visit = go(server.url)
    ask(visit, words("unloved"))
    open_hit(visit, "unloved")
    for way in ("No, keep it", "Escape"):
        visit.page.get_by_role("button", name="Remove", exact=True).click()
        if way == "Escape":
            visit.page.keyboard.press(way)
        else:
            visit.page.get_by_role("button", name=way).click()
        assert has_focus(visit.page.get_by_role("button", name="Remove", exact=True))
    assert server.get("/v1/documents/unloved").status == 200
    visit.page.get_by_role("button", name="Remove", exact=True).click()
    visit.page.get_by_role("button", name="Yes, remove it").click()
    visit.wait_for("#outcome", "No near-duplicate")
    assert server.get("/v1/documents/unloved").status == 404


# Errors


def test_errors_are_shown_and_cleared(go: Opener, server: Server) -> None:
    """The message of the service, and that of an unreachable server, until the next response."""
    visit = go(server.url)
    visit.refusals.add(413)
    ready(visit)
    text = "x" * (MOST_BYTES + 1)
    visit.one("#text").fill(text)
    visit.wait_for("#find-trouble", server.post("/v1/query", {"text": text}).json["error"]["message"])
    assert visit.one("#find-trouble").get_attribute("role") == "alert"
    ask(visit, FERRY)
    assert visit.one("#find-trouble").is_hidden()
    visit.page.route("**/v1/query", lambda route: route.abort())
    visit.one("#text").fill(words("lost"))
    visit.wait_for("#find-trouble", "The server does not respond.")
    assert visit.all("#hits li").count() == 0
    visit.page.unroute("**/v1/query")
    ask(visit, CHANGED_FERRY)
    assert visit.one("#find-trouble").is_hidden()
    visit.complaints[:] = [one for one in visit.complaints if "net::ERR_FAILED" not in one]


def test_a_request_to_a_busy_server_is_repeated(go: Opener, server: Server) -> None:
    """After the time of Retry-After, without a message."""
    visit = go(server.url)
    visit.refusals.add(503)
    ready(visit)
    refused: list[str] = []
    busy = {"error": {"code": "busy", "message": "too many requests"}}

    def answer(route: Any) -> None:  # noqa: ANN401 - its type needs playwright
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, json=busy, headers={"Retry-After": "1"})

    visit.page.route("**/v1/query", answer)
    visit.one("#text").fill(CHANGED_FERRY)
    visit.wait_for("#outcome", "2 near-duplicates")
    assert len(refused) == 1
    assert visit.one("#find-trouble").is_hidden()
