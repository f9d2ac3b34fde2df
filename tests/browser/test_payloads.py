"""Injection tests: markup in documents, ids, file names and settings is shown as text and never interpreted.

The content security policy of the page forbids foreign scripts too. The tests check the escaping with and without it.
"""

import json
import re
from itertools import cycle
from pathlib import Path

import pytest
from support.browser import Visit
from support.page_shapes import Shape, documents, with_warnings

import minwise as mw
from browser.conftest import Opener

PAYLOADS = [
    "<script>pwned=1</script>",
    "</script><script>pwned=1</script>",
    "</style><script>pwned=1</script>",
    "</title><script>pwned=1</script>",
    "</textarea></template></noscript><script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "</svg><svg/onload=pwned=1>",
    "</desc><foreignObject><img src=x onerror=pwned=1></foreignObject>",
    '"><img src=x onerror=pwned=1>',
    "'><img src=x onerror=pwned=1>",
    '" autofocus onfocus=pwned=1 x="',
    "' onmouseover=pwned=1 x='",
    "` onmouseover=pwned=1 `",
    "javascript:pwned=1",
    "<a href=javascript:pwned=1>click</a>",
    "<a href=data:text/html,<script>pwned=1</script>>click</a>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<object data=javascript:pwned=1></object>",
    "<base href=https://example.org/>",
    "<meta http-equiv=refresh content=0;url=javascript:pwned=1>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "<style>body{display:none}</style>",
    "<form action=javascript:pwned=1><button>x</button></form>",
    "<details open ontoggle=pwned=1>x</details>",
    "<!--><script>pwned=1</script>",
    "--><script>pwned=1</script>",
    "]]><script>pwned=1</script>",
    "{{constructor.constructor('pwned=1')()}}",
    "${pwned=1}",
    "\\u003cscript\\u003epwned=1\\u003c/script\\u003e",
    "&lt;script&gt;pwned=1&lt;/script&gt;",
    "&#60;script&#62;pwned=1&#60;/script&#62;",
    "<scr<script>ipt>pwned=1</scr</script>ipt>",
    "+ADw-script+AD4-pwned=1+ADw-/script+AD4-",
    "%3Cscript%3Epwned=1%3C/script%3E",
    "<math><mtext></p><img src=x onerror=pwned=1></mtext></math>",
]
FOREIGN = "img, iframe, object, embed, link, base, form, math, foreignObject, template, noscript, textarea, [onerror]"
protections = pytest.mark.parametrize("bypass_csp", [False, True], ids=["policy", "escaping alone"])


def assert_harmless(visit: Visit, payloads: list[str]) -> None:
    """Assert that no script ran, no foreign element exists, and every payload is visible text."""
    visit.open_all()
    for name in ("mouseover", "focus", "toggle"):
        visit.all("*").evaluate_all(
            "(all, name) => all.forEach(element => element.dispatchEvent(new Event(name)))", name
        )
    visit.page.wait_for_timeout(50)
    assert visit.page.evaluate("typeof pwned") == "undefined"
    assert visit.all(FOREIGN).count() == 0
    assert visit.all("script").count() == 1
    assert visit.all("style").count() == 1
    links = visit.all("[href]").evaluate_all("all => all.map(element => element.getAttribute('href'))")
    assert all(re.fullmatch("#[a-z-]+", link) for link in links)
    handlers = "all => all.flatMap(element => element.getAttributeNames()).filter(name => name.startsWith('on'))"
    assert visit.all("*").evaluate_all(handlers) == []
    visible = without_space(visit.one("body").text_content() or "")
    assert [payload for payload in payloads if without_space(payload) not in visible] == []
    assert visit.one("h1").is_visible()


def without_space(text: str) -> str:
    """Return the text without white space, which a page may change."""
    return re.sub(r"\s+", "", text)


@protections
def test_payloads_in_a_real_run(visit: Opener, tmp_path: Path, bypass_csp: bool) -> None:
    """In texts, ids, file names, and a column name in a setting."""
    for number, payload in enumerate(PAYLOADS):
        name = payload.replace("/", "\N{FULLWIDTH SOLIDUS}")
        rows = [{"id": f"{payload} {side}", "text": _text(number, payload, side), "<b>&rank": 1} for side in range(2)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    mw.dedup(str(tmp_path), keep="max:<b>&rank", output=tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["counts"]["removed"] == len(PAYLOADS)
    opened = visit(tmp_path / "out" / "report.html", bypass_csp=bypass_csp)
    names = [source["source"] for source in report["sources"]]
    ids = [
        document["id"] for cluster in report["largest_clusters"] for document in (cluster["kept"], *cluster["members"])
    ]
    assert_harmless(opened, [*names, *ids, "max:<b>&rank"])


def _text(number: int, payload: str, side: int) -> str:
    words = " ".join(f"{payload} text{number}word{word}" for word in range(40))
    return f"{words} {side}"


@protections
@pytest.mark.parametrize("first", [0, len(PAYLOADS) // 2])
def test_payloads_in_every_string_of_a_report(visit: Opener, first: int, bypass_csp: bool) -> None:
    payloads = PAYLOADS[first:] + PAYLOADS[:first]
    assert_harmless(visit(_filled(payloads).page(), bypass_csp=bypass_csp), payloads)


def _filled(payloads: list[str]) -> Shape:
    """Return a report with payloads in all strings: all of them in every text, one in each name."""
    shape, every = with_warnings(), "\n".join(payloads)
    for document, payload in zip(documents(shape), cycle(payloads), strict=False):
        text = shape.texts[document["source"], document["row"]]
        document |= {"id": f"{payload}{document['row']}", "source": payload}
        shape.texts[payload, document["row"]] = f"{every} {text} {every}"
    shape.report["settings"] |= {"keep": f"max:{every}", **{payload: payload for payload in payloads}}
    shape.report["minwise"] = every
    shape.report["warnings"] = payloads
    shape.report["unreadable"] = [{"source": payload, "row": None, "reason": payload} for payload in payloads]
    source = shape.report["sources"][0]
    shape.report["sources"] = [{**source, "source": payload} for payload in payloads]
    shape.run["stages"] = [{"stage": payload, "seconds": 1.0} for payload in payloads]
    shape.run["started"] = every
    return shape


def test_control_characters_are_visible_and_unchanged_in_the_list(visit: Opener, tmp_path: Path) -> None:
    """A browser would drop some of them and change the text direction at others."""
    nasty = "a\x00b\x1bc\u202ed\u2066e"
    text = " ".join(f"word{number}" for number in range(50))
    rows = [{"id": "kept", "text": text}, {"id": nasty, "text": f"{text} {nasty}"}]
    mw.dedup(rows, output=tmp_path / "out")
    opened = visit(tmp_path / "out" / "report.html")
    opened.select()
    assert "a␀b␛c⟨U+202E⟩d⟨U+2066⟩e" in opened.all(".member .id").first.inner_text()
    assert json.loads(opened.downloaded()[1]) == nasty
