"""Payloads: whatever a document, an id, a file name or a setting holds is shown as text, and never obeyed.

The page forbids foreign scripts by its policy as well. That is a second wall; here each wall is tried alone.
"""

import json
import re
from itertools import cycle
from pathlib import Path

import pytest
from support.browser import Visit
from support.page_shapes import Shape, alarming, documents

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
walls = pytest.mark.parametrize("bypass_csp", [False, True], ids=["policy", "escaping alone"])


def assert_harmless(visit: Visit, payloads: list[str]) -> None:
    """Nothing ran, nothing foreign was made, every payload is there to read."""
    visit.open_all()
    for name in ("mouseover", "focus", "toggle"):
        visit.all("*").evaluate_all("(all, name) => all.forEach(one => one.dispatchEvent(new Event(name)))", name)
    visit.page.wait_for_timeout(50)
    assert visit.page.evaluate("typeof pwned") == "undefined"
    assert visit.all(FOREIGN).count() == 0
    assert visit.all("script").count() == 1
    assert visit.all("style").count() == 1
    links = visit.all("[href]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert all(re.fullmatch("#[a-z-]+", link) for link in links)
    handlers = "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
    assert visit.all("*").evaluate_all(handlers) == []
    seen = squeezed(visit.one("body").text_content() or "")
    assert [one for one in payloads if squeezed(one) not in seen] == []
    assert visit.one("h1").is_visible()


def squeezed(text: str) -> str:
    """Without white space, which a page may break and join."""
    return re.sub(r"\s+", "", text)


@walls
def test_payloads_in_a_real_run(visit: Opener, tmp_path: Path, bypass_csp: bool) -> None:
    """In texts, in ids, in the names of files and in the name of a column that a setting holds."""
    for number, payload in enumerate(PAYLOADS):
        name = payload.replace("/", "\N{FULLWIDTH SOLIDUS}")
        rows = [{"id": f"{payload} {side}", "text": _text(number, payload, side), "<b>&rank": 1} for side in range(2)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    mw.dedup(str(tmp_path), keep="max:<b>&rank", output=tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["counts"]["removed"] == len(PAYLOADS)
    opened = visit(tmp_path / "out" / "report.html", bypass_csp=bypass_csp)
    names = [one["source"] for one in report["sources"]]
    shown = [one["id"] for cluster in report["largest_clusters"] for one in (cluster["kept"], *cluster["members"])]
    assert_harmless(opened, [*names, *shown, "max:<b>&rank"])


def _text(number: int, payload: str, side: int) -> str:
    words = " ".join(f"{payload} text{number}word{word}" for word in range(40))
    return f"{words} {side}"


@walls
@pytest.mark.parametrize("first", [0, len(PAYLOADS) // 2])
def test_payloads_everywhere(visit: Opener, first: int, bypass_csp: bool) -> None:
    """In each place of a report that is not a number, also in those that a run could hardly fill with them."""
    payloads = PAYLOADS[first:] + PAYLOADS[:first]
    assert_harmless(visit(_filled(payloads).page(), bypass_csp=bypass_csp), payloads)


def _filled(payloads: list[str]) -> Shape:
    """A report with payloads in each of its words: all of them in every text, one after the other in names."""
    shape, every = alarming(), "\n".join(payloads)
    for one, payload in zip(documents(shape), cycle(payloads), strict=False):
        text = shape.texts[one["source"], one["row"]]
        one |= {"id": f"{payload}{one['row']}", "source": payload}
        shape.texts[payload, one["row"]] = f"{every} {text} {every}"
    shape.report["settings"] |= {"keep": f"max:{every}", **{payload: payload for payload in payloads}}
    shape.report["minwise"] = every
    shape.report["warnings"] = payloads
    shape.report["unreadable"] = [{"source": payload, "row": None, "reason": payload} for payload in payloads]
    source = shape.report["sources"][0]
    shape.report["sources"] = [{**source, "source": payload} for payload in payloads]
    shape.run["stages"] = [{"stage": payload, "seconds": 1.0} for payload in payloads]
    shape.run["started"] = every
    return shape


def test_control_characters_are_shown(visit: Opener, tmp_path: Path) -> None:
    """A browser would drop some and turn the text at others; they are seen, and the list still has them as they are."""
    nasty = "a\x00b\x1bc\u202ed\u2066e"
    text = " ".join(f"word{number}" for number in range(50))
    rows = [{"id": "kept", "text": text}, {"id": nasty, "text": f"{text} {nasty}"}]
    mw.dedup(rows, output=tmp_path / "out")
    opened = visit(tmp_path / "out" / "report.html")
    opened.tick()
    assert "a␀b␛c⟨U+202E⟩d⟨U+2066⟩e" in opened.all(".member .id").first.inner_text()
    assert json.loads(opened.downloaded()[1]) == nasty
