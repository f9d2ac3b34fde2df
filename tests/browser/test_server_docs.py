"""API documentation page: the content of openapi.json, with examples that run."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.running import Server, serving
from support.browser import Visit

import minwise as mw
from browser.conftest import Opener
from browser.test_appearance import CONTRASTS, OUTSIDE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve with tokens, which the page itself does not need."""
    from minwise.server.tokens import make_token

    folder: Path = tmp_path_factory.mktemp("index")
    mw.Index.create(folder / "docs.mw", threshold=0.5, shingle="word:2", store_text=True).close()
    token = make_token(folder / "tokens", ["read", "write"], "docs")
    with serving(folder / "docs.mw", "--token-file", str(folder / "tokens")) as running:
        running.token = token
        yield running


def opened(go: Opener, server: Server) -> Visit:
    """Open the page and wait for its content."""
    visit = go(server.url, "docs", reduced_motion="reduce")
    visit.soon("#messages")
    return visit


def test_every_request_and_message_is_documented(go: Opener, server: Server) -> None:
    """With parameters, fields and errors."""
    visit, api = opened(go, server), server.get("/openapi.json").json
    found = [
        (method.upper(), path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    titles = visit.all("#requests h3").all_inner_texts()
    assert sorted(titles) == sorted(f"{method} {path}" for method, path, _ in found)
    for method, path, operation in found:
        text = visit.page.get_by_role("article", name=f"{method} {path}", exact=True).text_content() or ""
        assert operation["summary"] in text
        for parameter in operation.get("parameters", []):
            assert parameter["name"] in text
            assert parameter.get("description", "").replace("`", "") in text
        for status, answer in operation["responses"].items():
            assert status.startswith("2") or status in text
            assert [code for code in re.findall(r"^- `(\w+)`", answer["description"], re.M) if code not in text] == []
        assert ("Requires a token" in text) == ("security" in operation)
    for name, schema in api["components"]["schemas"].items():
        shown = visit.one(f"#message-{name} table, #message-{name}:not(:has(table))")
        rows = shown.locator("th[scope=row] code").all_inner_texts()
        assert rows == list(schema.get("properties", {}))
    assert api["info"]["version"] in visit.one("#version").inner_text()


def test_examples_run(go: Opener, server: Server) -> None:
    """Each succeeds when it is pasted into a shell."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed: apt-get install curl")
    commands = opened(go, server).all("pre.curl").all_inner_texts()
    assert len(commands) >= 10

    def order(command: str) -> int:
        """Additions first; removals last, batches after single ones, whose document then no longer exists."""
        return (
            0
            if "-X POST" in command
            else 2
            if "-X DELETE" in command and "-d" not in command
            else 3
            if "DELETE" in command
            else 1
        )

    for command in sorted(commands, key=order):
        run = subprocess.run(
            ["sh", "-c", command.replace("curl ", "curl --silent --show-error --fail ", 1)],
            env={**os.environ, "TOKEN": server.token or ""},
            capture_output=True,
            check=False,
        )
        assert run.returncode == 0, (command, run.stderr)
        assert run.stdout


def test_page_is_accessible(go: Opener, server: Server) -> None:
    """Every link has a target, every control a name, and text is readable on any screen in both colour schemes."""
    visit = opened(go, server)
    visit.open_all()
    ids = visit.all("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    links = visit.all("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert [one for one in links if one.startswith("#") and one[1:] not in ids] == []
    snapshot = visit.one("body").aria_snapshot()
    assert [
        one
        for one in re.findall(r"- (?:button|link|region|navigation|img)\b(.*)", snapshot)
        if not one.startswith(' "')
    ] == []
    for name in ("main", "banner"):
        assert visit.page.get_by_role(name).count() == 1
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        assert [one for one in visit.page.evaluate(CONTRASTS) if one[0] < 4.5] == []
    for width in (360, 700, 1280):
        visit.page.set_viewport_size({"width": width, "height": 800})
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
        assert visit.page.evaluate(OUTSIDE, width) == []


def test_url_fragment_scrolls_to_a_request(go: Opener, server: Server) -> None:
    """Although the content is created later. The Copy button copies the example."""
    visit = go(server.url, "docs#post-v1-query", permissions=["clipboard-read", "clipboard-write"])
    visit.soon("#messages")
    top = visit.one("#post-v1-query").evaluate("one => one.getBoundingClientRect().top")
    assert -1 <= top <= 100
    visit.page.get_by_role("button", name="Copy the example of POST /v1/query").click()
    visit.wait_for("#post-v1-query button", "Copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.one("#post-v1-query pre").inner_text()
