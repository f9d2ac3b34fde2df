"""Other views of the server page, tokens, read-only servers, and accessibility."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import pytest
from server.running import Server, serving
from support.browser import Visit

import minwise as mw
from browser.conftest import Opener
from browser.server_page import CHANGED_FERRY, FERRY, add, ask, filled, has_focus, open_hit, ready, words
from browser.test_appearance import CONTRASTS, OUTSIDE

if TYPE_CHECKING:
    from playwright.sync_api import Route

PAGE = Path(mw.__file__).parent / "server" / "page"
# Everything that a page could store, and the value of the field.
STORED_STATE = (
    "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, document.getElementById('token').value])"
)
VIEWS = {"#find": "Find", "#documents": "Documents", "#curve": "S-curve", "#index": "Index"}
# Roles that require an accessible name.
NAMED = (
    "button",
    "textbox",
    "slider",
    "spinbutton",
    "checkbox",
    "combobox",
    "link",
    "img",
    "region",
    "navigation",
    "form",
)


# Documents and statistics


def test_documents_are_listed_and_opened(go: Opener, server: Server) -> None:
    """The newest first, more on request; each can be opened, closed and used as the query."""
    visit = go(server.url)
    visit.page.get_by_role("link", name="Documents").click()
    visit.all("#listed > li").nth(19).wait_for()
    while visit.one("#more").is_visible():
        shown = visit.all("#listed > li").count()
        visit.one("#more").click()
        visit.all("#listed > li").nth(shown).wait_for()
        # The focus moves to the first new document.
        visit.soon(f"#listed > li:nth-child({shown + 1}) .toggle:focus")
    names = visit.all("#listed h2").all_inner_texts()
    wanted = [str(one["id"]) for one in server.get("/v1/documents?limit=100").json["documents"]]
    assert names == wanted
    assert names[-1] == "ferry"
    item = visit.all("#listed > li").last
    assert FERRY[:40] in item.inner_text()
    item.get_by_role("button", name="ferry").click()
    item.get_by_role("region", name="The text of ferry").wait_for()
    assert item.locator(".whole").inner_text() == FERRY
    assert json.loads(item.locator("pre").inner_text()) == {"source": "wire", "year": 2025}
    visit.page.keyboard.press("Escape")
    assert item.locator(".whole").count() == 0
    item.get_by_role("button", name="ferry").click()
    item.get_by_role("button", name="Find its near-duplicates").click()
    visit.wait_for("#hits strong", "1.0000")
    assert visit.page.url.endswith("#find")


def test_a_document_is_opened_by_its_id(go: Opener, server: Server) -> None:
    """With any characters; numbers keep all digits."""
    visit = go(server.url, "#documents")
    for name in ("a/b ?#%25 ü", str(2**63 - 1)):
        open_by_id(visit, server, name)
    assert str(2**62 + 1) in visit.one("#asked-for pre").inner_text()


def open_by_id(visit: Visit, server: Server, name: str) -> None:
    """Open a document, and check that it is the requested one."""
    visit.one("#wanted").fill(name)
    visit.one("#wanted").press("Enter")
    visit.wait_for("#asked-for h2", name)
    stored = server.get(f"/v1/documents/{quote(name, safe='')}").json
    assert visit.soon("#asked-for .whole").inner_text() == stored["text"]
    assert visit.one("#asked-for h2").inner_text() == str(stored["id"])
    visit.soon("#asked-for .toggle:focus")


def test_a_missing_document_is_reported(go: Opener, server: Server) -> None:
    """Also if it was removed in another window."""
    server.add("fleeting", words("fleeting"))
    visit = go(server.url, "#documents")
    visit.refusals.add(404)
    visit.wait_for("#listed h2", "fleeting").click()
    visit.soon("#listed .whole")
    said = server.get("/v1/documents/nowhere").json["error"]["message"]
    visit.one("#wanted").fill("nowhere")
    visit.one("#wanted").press("Enter")
    visit.wait_for("#documents-trouble", said)
    assert server.ask("DELETE", "/v1/documents/fleeting").status == 200
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("button", name="fleeting", exact=True).click()
    visit.page.get_by_role("button", name="fleeting", exact=True).click()
    visit.wait_for("#listed .trouble", server.get("/v1/documents/fleeting").json["error"]["message"])


def test_a_document_is_removed_from_the_list(go: Opener, server: Server) -> None:
    """The focus moves to the next one, and the count is updated."""
    server.add("next", words("next"))
    server.add("doomed", words("doomed"))
    visit = go(server.url, "#documents")
    visit.page.get_by_role("button", name="doomed", exact=True).click()
    visit.page.get_by_role("button", name="Remove", exact=True).click()
    visit.page.get_by_role("button", name="Yes, remove it").click()
    visit.wait_for("#documents-news", "doomed was removed.")
    assert has_focus(visit.page.get_by_role("button", name="next", exact=True))
    count = server.get("/v1/stats").json["documents"]
    visit.wait_for("#documents-outcome", f"{count} documents, the newest first.")
    assert server.get("/v1/documents/doomed").status == 404


def test_all_settings_limits_and_sizes_are_shown(go: Opener, server: Server) -> None:
    visit = go(server.url, "#index")
    visit.wait_for("#figures", "documents")
    stats = server.get("/v1/stats").json
    assert visit.all("#figures .large").first.inner_text() == f"{stats['documents']:,}"
    settings = dict(line.split("\n") for line in visit.all("#settings > div").all_inner_texts())
    assert set(settings) == {name.replace("_", " ") for name in stats["settings"]}
    assert (settings["threshold"], settings["shingle"], settings["store"]) == ("0.5", "word:2", "text")
    limits = dict(line.split("\n") for line in visit.all("#limits > div").all_inner_texts())
    assert set(limits) == {name.replace("_", " ") for name in stats["limits"]}
    assert (limits["max document"], limits["receive timeout"]) == ("20 kB", "10 s")
    assert "seed" not in settings
    server.add("counted", words("counted"))
    visit.page.get_by_role("button", name="Refresh").click()
    visit.wait_for("#figures .large", f"{server.get('/v1/stats').json['documents']:,}")


# Tokens, read-only servers and other indexes


class Guarded(NamedTuple):
    """A server with tokens.

    Attributes:
        server: The server; requests of tests use the token with all rights.
        token: Token with all rights.
        reader: Token with the right to read.
    """

    server: Server
    token: str
    reader: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Serve the same documents with tokens."""
    from minwise.server.tokens import make_token

    folder = tmp_path_factory.mktemp("guarded")
    tokens = folder / "tokens"
    token, reader = make_token(tokens, ["read", "write"], "page"), make_token(tokens, ["read"], "reader")
    with serving(filled(folder / "news.mw"), "--token-file", str(tokens)) as running:
        running.token = token
        yield Guarded(running, token, reader)


def let_in(visit: Visit, token: str) -> None:
    """Enter a valid token."""
    visit.refusals.add(401)
    visit.soon("#token-form")
    visit.one("#token").fill(token)
    visit.page.keyboard.press("Enter")
    visit.one("#token-form").wait_for(state="hidden")
    ready(visit)


def test_a_token_is_requested_and_kept_in_memory_only(go: Opener, guarded: Guarded) -> None:
    """A wrong one is reported."""
    visit = go(guarded.server.url)
    visit.refusals.add(401)
    visit.soon("#token-form")
    assert has_focus(visit.one("#token"))
    visit.page.keyboard.type("wrong")
    visit.page.keyboard.press("Enter")
    visit.wait_for("#token-words", "does not know this token")
    let_in(visit, guarded.token)
    ask(visit, CHANGED_FERRY)
    open_hit(visit, "ferry")
    assert visit.one("#adding").is_visible()
    assert visit.page.get_by_role("button", name="Remove").count() == 1
    visit.page.get_by_role("link", name="Documents").click()
    visit.all("#listed > li").first.wait_for()
    assert visit.page.evaluate(STORED_STATE) == '[{},{},"",""]'
    assert not any(guarded.token in one for one in visit.requests)
    visit.page.reload()
    visit.soon("#token-form")


def test_a_late_refusal_of_a_replaced_token_is_ignored(go: Opener, guarded: Guarded) -> None:
    visit = go(guarded.server.url)
    held: list[Route] = []

    def hold_back(route: "Route") -> None:
        if route.request.headers.get("authorization") == "Bearer wrong":
            held.append(route)
        else:
            route.continue_()

    visit.page.route("**/v1/plan", hold_back)
    visit.refusals.add(401)
    visit.soon("#token-form")
    visit.page.keyboard.type("wrong")
    visit.page.keyboard.press("Enter")
    visit.wait_for("#token-words", "does not know this token")
    let_in(visit, guarded.token)
    assert len(held) == 1
    with visit.page.expect_event("requestfinished", lambda request: request.url.endswith("/v1/plan")):
        held[0].continue_()
    visit.page.get_by_role("link", name="Documents").click()
    visit.all("#listed > li").first.wait_for()
    assert visit.one("#token-form").is_hidden()
    assert visit.page.evaluate(STORED_STATE) == '[{},{},"",""]'


def assert_only_reads(visit: Visit, who: str) -> None:
    """Check that everything can be read and no change is offered."""
    ask(visit, CHANGED_FERRY)
    open_hit(visit, "ferry")
    assert visit.one("#adding").is_hidden()
    assert visit.page.get_by_role("button", name="Remove").count() == 0
    visit.page.get_by_role("link", name="Index").click()
    visit.wait_for("#index-outcome", f"{who} is read-only: documents cannot be added or removed.")
    visit.page.get_by_role("link", name="Documents").click()
    visit.all("#listed .toggle").first.click()
    visit.soon("#listed .opened .line")
    assert visit.page.get_by_role("button", name="Remove").count() == 0


def test_a_read_only_server_offers_no_changes(go: Opener, tmp_path: Path) -> None:
    with serving(filled(tmp_path / "news.mw"), "--read-only") as server:
        assert_only_reads(go(server.url), "This server")


def test_a_read_only_token_offers_no_changes(go: Opener, guarded: Guarded) -> None:
    visit = go(guarded.server.url)
    let_in(visit, guarded.reader)
    assert_only_reads(visit, "Your token")


def test_an_index_without_texts_shows_ids_only(go: Opener, tmp_path: Path) -> None:
    """With estimated similarities, and a note that texts are not stored."""
    with serving(filled(tmp_path / "news.mw", "sketch")) as server:
        visit = go(server.url)
        ask(visit, FERRY)
        assert visit.one("#not-stored").is_visible()
        assert "estimated" in visit.one("#hits").inner_text()
        open_hit(visit, "ferry")
        assert "not stored" in visit.soon("#hits .opened:visible").inner_text()
        assert visit.all(".snippet, mark, .sides").count() == 0
        visit.page.get_by_role("link", name="Documents").click()
        visit.wait_for("#documents-outcome", "Their texts are not stored")
        assert "--store-text" in visit.one("#no-text-search").inner_text()
        assert not visit.one("#by-text").is_visible()
        visit.all("#listed .toggle").first.click()
        visit.wait_for("#listed .opened", "not stored")


def test_the_first_document_is_added_from_the_page(go: Opener, tmp_path: Path) -> None:
    mw.Index.create(tmp_path / "new.mw", threshold=0.5, shingle="word:2", store_text=True).close()
    with serving(tmp_path / "new.mw") as server:
        visit = go(server.url)
        assert "Add a text with the form below" in visit.soon("#empty").inner_text()
        ask(visit, words("first"))
        add(visit, "first")
        visit.wait_for("#outcome", "1 near-duplicate among 1 document,")
        assert not visit.one("#empty").is_visible()
        visit.page.get_by_role("link", name="Documents").click()
        visit.wait_for("#documents-outcome", "1 document, the newest first.")


def test_a_sample_text_shows_how_an_empty_index_works(go: Opener, tmp_path: Path) -> None:
    """It fills the text field and the form that adds it; then a changed text finds it."""
    mw.Index.create(tmp_path / "new.mw", store_text=True).close()
    with serving(tmp_path / "new.mw") as server:
        visit = go(server.url)
        ready(visit)
        visit.page.get_by_role("button", name="Try a sample text").click()
        sample = visit.one("#text").input_value()
        assert len(sample.split()) > 30
        assert visit.one("#new-id").input_value() == "sample"
        visit.page.get_by_role("button", name="Add", exact=True).click()
        visit.wait_for("#outcome", "1 near-duplicate among 1 document,")
        ask(visit, sample.replace("coffee", "tea"))
        open_hit(visit, "sample")
        assert visit.all(".sides mark.only").all_text_contents() == ["tea", "coffee"]


def test_an_empty_index_that_cannot_be_changed_says_how_it_is_filled(go: Opener, tmp_path: Path) -> None:
    mw.Index.create(tmp_path / "new.mw", store_text=True).close()
    with serving(tmp_path / "new.mw", "--read-only") as server:
        visit = go(server.url)
        shown = visit.soon("#empty").inner_text()
        assert "minwise index add INDEX FILES" in shown
        assert "form below" not in shown
        visit.page.get_by_role("button", name="Try a sample text").click()
        visit.wait_for("#outcome", "No near-duplicate among 0 documents")
        assert not visit.one("#adding").is_visible()


# Text search


def search(visit: Visit, phrase: str) -> None:
    """Search the stored texts and wait for the result."""
    visit.one("#phrase").fill(phrase)
    with visit.page.expect_response("**/v1/search*"):
        visit.one("#phrase").press("Enter")
    visit.wait_for("#search-outcome", "contain")


def test_documents_are_found_by_their_texts(go: Opener, server: Server) -> None:
    """With the phrase marked; a found document can be opened, and the list of all documents comes back."""
    visit = go(server.url, "#documents")
    search(visit, "NIGHT ferry")
    assert visit.one("#search-outcome").inner_text() == "2 documents contain “NIGHT ferry”."
    assert visit.all("#listed .toggle").all_inner_texts() == ["ferry-moved", "ferry"]
    assert visit.all("#listed mark").all_text_contents() == ["night ferry"] * 2
    visit.all("#listed .toggle").last.click()
    assert visit.soon("#listed .whole").inner_text() == FERRY
    search(visit, "nothing like it")
    assert visit.one("#search-outcome").inner_text() == "No document contains “nothing like it”."
    assert visit.all("#listed li").count() == 0
    visit.page.get_by_role("button", name="Show all documents").click()
    visit.wait_for("#listed .toggle", "filler-44")
    assert visit.one("#phrase").input_value() == visit.one("#search-outcome").inner_text() == ""


def test_a_long_search_continues_by_itself_and_in_pages(go: Opener, server: Server) -> None:
    """A response may search a few documents only: the page asks again until there are enough, and can be stopped."""
    visit = go(server.url, "#documents")

    def shorten(route: "Route") -> None:
        """Let each response return at most seven documents."""
        route.continue_(url=re.sub(r"limit=\d+", "limit=7", route.request.url))

    visit.page.route("**/v1/search*", shorten)
    visit.one("#phrase").fill("filler")
    visit.one("#phrase").press("Enter")
    so_far = re.compile(r"^21 documents contain “filler”, \d+ of \d+ documents searched so far\.$")
    visit.wait_for("#search-outcome", so_far)
    visit.page.get_by_role("button", name="More…").click()
    visit.wait_for("#search-outcome", "42 documents contain")
    visit.page.get_by_role("button", name="More…").click()
    visit.wait_for("#search-outcome", "45 documents contain “filler”.")
    assert visit.all("#listed li").count() == 45
    assert not visit.one("#more").is_visible()
    assert not visit.one("#stop").is_visible()


def test_a_search_can_be_stopped_and_continued(go: Opener, server: Server) -> None:
    visit = go(server.url, "#documents")
    held: list[Route] = []
    visit.page.route("**/v1/search*before=*", lambda route: held.append(route))
    visit.page.route(
        "**/v1/search*limit=20", lambda route: route.continue_(url=route.request.url.replace("limit=20", "limit=1"))
    )
    visit.one("#phrase").fill("filler")
    visit.one("#phrase").press("Enter")
    visit.wait_for("#search-outcome", re.compile("^1 document contains “filler”, .* searched so far"))
    visit.page.get_by_role("button", name="Stop").click()
    assert not visit.one("#stop").is_visible()
    visit.page.unroute("**/v1/search*before=*")
    visit.page.get_by_role("button", name="More…").click()
    visit.wait_for("#search-outcome", re.compile("^2[01] documents contain"))


# Accessibility


def focused(visit: Visit) -> str:
    """Return the id, label or text of the focused element."""
    script = "(one => one.id || one.getAttribute('aria-label') || one.textContent.trim())(document.activeElement)"
    return str(visit.page.evaluate(script))


def tab_to(visit: Visit, name: str, most: int = 40) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(most):
        if focused(visit) == name:
            return
        visit.page.keyboard.press("Tab")
    pytest.fail(f"{name} cannot be reached by Tab, {focused(visit)} has the focus")


def test_everything_works_with_the_keyboard(go: Opener, server: Server) -> None:
    """Adding, comparing and removing a document, and all views."""
    visit = go(server.url)
    ready(visit)
    keyboard = visit.page.keyboard
    keyboard.press("Tab")
    assert visit.one("#skip").bounding_box()["x"] >= 0  # type: ignore[index]
    keyboard.press("Enter")
    assert focused(visit) == "content"
    tab_to(visit, "text")
    keyboard.insert_text(words("keys"))
    visit.wait_for("#outcome", "No near-duplicate")
    tab_to(visit, "Add this text to the index")
    keyboard.press("Enter")
    tab_to(visit, "new-id")
    keyboard.type("by-keys")
    keyboard.press("Enter")
    visit.wait_for("#added", "Added as by-keys.")
    visit.wait_for("#hits h2", "by-keys")
    assert focused(visit) == "new-id"
    keyboard.press("Escape")
    assert focused(visit) == "Add this text to the index"
    tab_to(visit, "by-keys")
    keyboard.press("Enter")
    visit.soon("#hits .opened .line")
    assert focused(visit) == "by-keys"
    tab_to(visit, "Your text and by-keys, side by side")
    keyboard.press("Escape")
    assert focused(visit) == "by-keys"
    assert visit.all("#hits .opened:visible").count() == 0
    keyboard.press("Enter")
    visit.soon("#hits .opened .line")
    tab_to(visit, "Remove")
    keyboard.press("Enter")
    assert focused(visit) == "No, keep it"
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    visit.wait_for("#outcome", "No near-duplicate")
    assert focused(visit) == "find-name"
    for name, view in (("Documents", "documents"), ("S-curve", "curve"), ("Index", "index"), ("Find", "find")):
        visit.page.get_by_role("link", name=name).focus()
        keyboard.press("Enter")
        visit.one(f"#{view}").wait_for()
        assert focused(visit) == f"{view}-name"
        assert visit.one("nav a[aria-current=page]").inner_text() == name
        assert visit.page.title() == f"{name} · minwise"


def everything_open(visit: Visit, view: str) -> None:
    """Open everything of a view: a hit, a document, the form, the table."""
    ready(visit)
    visit.open_all()
    if view == "#find":
        ask(visit, CHANGED_FERRY)
        open_hit(visit, "ferry-moved")
    if view == "#documents":
        visit.all("#listed .toggle").first.click()
        visit.soon("#listed .opened .line")


def test_every_view_is_accessible(go: Opener, server: Server) -> None:
    """Controls have names, text is readable in both colour schemes, and nothing scrolls sideways."""
    visit = go(server.url, reduced_motion="reduce")
    for view in VIEWS:
        visit.page.get_by_role("link", name=VIEWS[view], exact=True).click()
        everything_open(visit, view)
        assert_accessible_names(visit)
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            contrasts = visit.page.evaluate(CONTRASTS)
            assert len(contrasts) > 20
            assert [one for one in contrasts if one[0] < 4.5] == []
        for width in (360, 700, 1280):
            visit.page.set_viewport_size({"width": width, "height": 800})
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width
            assert visit.page.evaluate(OUTSIDE, width) == []


def assert_accessible_names(visit: Visit) -> None:
    """Check that all controls have an accessible name."""
    controls = re.findall(f"- ({'|'.join(NAMED)})\\b(.*)", visit.one("body").aria_snapshot())
    assert len(controls) > 5
    assert [one for one in controls if not one[1].startswith(' "')] == []
    for role in ("main", "banner"):
        assert visit.page.get_by_role(role).count() == 1
    assert visit.page.get_by_role("navigation", name="Views").count() == 1
    assert visit.page.get_by_role("heading", level=1).count() == 1
    ids = visit.all("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    assert visit.all("dl > div:not(:has(> dt):has(> dd))").count() == 0


def test_errors_are_readable(go: Opener, server: Server) -> None:
    """With sufficient contrast; transitions only without reduced motion."""
    visit = go(server.url, reduced_motion="reduce")
    ask(visit, CHANGED_FERRY)
    add(visit, "near-copy", unique=True)
    visit.wait_for("#added.refused", "Not added")
    visit.page.evaluate("document.getElementById('token-form').hidden = false")
    visit.page.evaluate("document.getElementById('find-trouble').hidden = false")
    visit.page.evaluate("document.getElementById('find-trouble').textContent = 'trouble'")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        assert [one for one in visit.page.evaluate(CONTRASTS) if one[0] < 4.5] == []
    moving = "one => getComputedStyle(one).transitionDuration.split(', ').some(time => time !== '0s')"
    assert visit.one("#clear").evaluate(moving) is False
    visit.page.emulate_media(reduced_motion="no-preference")
    assert visit.one("#clear").evaluate(moving) is True


def test_long_names_fit(go: Opener, server: Server) -> None:
    """A name without break opportunities is shortened, and metadata does not widen the page."""
    long = "averylongnamewithnoplacetobreakit" * 20
    metadata = {long: long, **{f"key{number}": number for number in range(30)}}
    server.add(long, words("lengthy"), metadata)
    visit = go(server.url, viewport={"width": 360, "height": 740})
    ask(visit, words("lengthy"))
    visit.all("#hits .toggle").first.click()
    visit.soon("#hits .opened .line")
    assert visit.page.evaluate("document.documentElement.scrollWidth") == 360
    assert visit.page.evaluate(OUTSIDE, 360) == []
    assert visit.all("#hits .toggle bdi").first.get_attribute("title") == long
    assert visit.one("#hits dl").inner_text().split()[-3:] == ["and", "23", "more"]
    assert visit.all("dl > div:not(:has(> dt):has(> dd))").count() == 0
    server.ask("DELETE", "/v1/documents", {"ids": [long]})


def test_control_characters_and_direction_marks_are_visible(go: Opener, server: Server) -> None:
    """In names, metadata and texts."""
    name, text = "a\u202eb\x00c\u2066", f"{words('nasty')} \u202eturned \x1b[1m\u2028 end"
    server.add(name, text, {"\u202ekey": "\u200fvalue"})
    visit = go(server.url)
    ask(visit, words("nasty"))
    assert visit.one("#hits h2").inner_text() == "a⟨U+202E⟩b␀c⟨U+2066⟩"
    assert visit.one("#hits dl").inner_text().split() == ["⟨U+202E⟩key", "⟨U+200F⟩value"]
    assert visit.all(".snippet mark").all_inner_texts() == [words("nasty")]
    visit.page.get_by_role("link", name="Documents").click()
    visit.wait_for("#listed .snippet", "nasty0")
    assert "\u202e" not in (visit.one("body").text_content() or "")
    server.ask("DELETE", "/v1/documents", {"ids": [name]})


# Files


def test_every_file_is_used(go: Opener, server: Server) -> None:
    """By one of the two pages."""
    found: set[str] = set()
    for view in ("", "docs"):
        visit = go(server.url, view)
        visit.page.wait_for_load_state("networkidle")
        found |= {one.removeprefix(f"{server.url}static/") for one in visit.requests if "/static/" in one}
    assert found | {"index.html", "docs.html"} == {"icon.svg", *(one.name for one in PAGE.iterdir())}


@pytest.mark.parametrize("name", ["index.html", "docs.html"])
def test_pages_have_no_inline_scripts_styles_or_foreign_urls(name: str) -> None:
    markup = (PAGE / name).read_text(encoding="utf-8")
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=\"/static/)", markup) == []
    links = re.findall(r'(?:href|src)="([^"]*)"', markup)
    assert [one for one in links if not re.fullmatch(r"#[a-z]+|/[a-z./#_]*", one)] == []


def test_scripts_create_no_markup_from_strings() -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setHTML|srcdoc|https?:"
    )
    for path in PAGE.glob("*.js"):
        found = re.findall(forbidden, path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", ""))
        assert found == [], path.name
