"""The page of a report: well-formed and complete for every shape that a report can have, and quickly made."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from support.page_shapes import (
    LONG,
    NEWSROOM,
    SHAPES,
    Shape,
    against,
    audited,
    chained,
    documents,
    estimated,
    many_sources,
    newsroom,
    sets,
)

from minwise.report.page import report_page

# Making the page against reading it with html.parser, which is plain Python too: 1.7 to 3.0 measured, while others were
# at work and alone. A search for what two texts share that is quadratic takes hundreds of times as long.
PAGE_AGAINST_READING = 6
VOID = {"meta", "input", "br"}
every_shape = pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)


class Tree(HTMLParser):
    """Reads a page and holds it to closing what it opens."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element of SVG that holds nothing."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Holds the page to closing the innermost element first."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Notes what is to be read."""
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)

    @property
    def text(self) -> str:
        """What is to be read, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def attributes(self, name: str) -> Iterator[str]:
        """Every value of an attribute."""
        return (attributes[name] for _, attributes in self.elements if name in attributes)


def read(shape: Shape) -> Tree:
    """The page of a shape."""
    return Tree(shape.page())


@every_shape
def test_every_page_is_well_formed(make: Callable[[], Shape]) -> None:
    """Elements close in order, names are used once, and whatever points at a name finds it."""
    tree = read(make())
    names = Counter(tree.attributes("id"))
    assert max(names.values()) == 1
    wanted = [one for value in tree.attributes("aria-labelledby") for one in value.split()]
    wanted += [value[1:] for value in tree.attributes("href")]
    assert wanted
    assert set(wanted) <= set(names)


@every_shape
def test_headings_come_in_order(make: Callable[[], Shape]) -> None:
    """One of the first rank, then no rank is left out."""
    ranks = [int(tag[1]) for tag, _ in read(make()).elements if re.fullmatch("h[1-6]", tag)]
    assert ranks[0] == 1
    assert ranks.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))


@every_shape
def test_every_page_has_its_figures(make: Callable[[], Shape]) -> None:
    """The numbers of report.json, each where it is named."""
    shape = make()
    page = shape.page()
    counts = shape.report["counts"]
    for name in ("read", "kept", "removed", "quarantined", "empty"):
        assert re.search(rf'id="figure-{name}">.*?<data value="{counts[name]}">{counts[name]:,}</data>', page), name


@every_shape
def test_nothing_is_said_of_what_is_not_known(make: Callable[[], Shape]) -> None:
    """No null or nan reaches the page."""
    assert not re.search(r"\b(None|nan|null|inf)\b", read(make()).text)


def test_many_sources_are_cut_short() -> None:
    """The fifty that lost most, and how many are left out; so are their alarms."""
    shape = many_sources(3000)
    tree = read(shape)
    assert tree.text.count("data/part-") == 50 + 5 + 100
    others = sorted(one["removed"] for one in shape.report["sources"])[:-50]
    assert f"2,950 more sources lost {sum(others):,} documents together" in tree.text
    assert "3,000 things to look at" in tree.text
    assert "2,895 more in report.json" in tree.text
    assert len(shape.page()) < 200_000


def test_what_was_only_compared_with_is_said() -> None:
    """It has no row of its own: nothing of it was kept or removed."""
    text = read(against()).text
    assert "1 source with 40 documents only compared with (against)." in text
    assert "2 of 40 documents kept." in text


def test_those_that_lost_most_come_first() -> None:
    """By removed documents, and a share over half is marked."""
    page = many_sources(100).page()
    assert re.findall(r"data/part-000(\d\d)\.jsonl</span>", page)[:3] == ["89", "88", "87"]
    assert page.count('class="bad"') == 89 - 50


def test_estimates_are_called_so() -> None:
    """The similarities, and the axis of their histogram."""
    text = read(estimated()).text
    assert "≈ 0." in text or "≈ 1." in text
    assert "estimated from signatures" in text
    assert "Similarities are estimates" in text
    assert "≈" not in read(newsroom()).text


def test_chains_are_called_so() -> None:
    """A member below the threshold says how it came in, and the alarm is there."""
    page = chained().page()
    assert page.count('<span class="tag">joined through others</span>') == 1
    assert "they were joined through others" in page
    assert "1 thing to look at" in page
    assert "joined through others" not in newsroom().page()


def test_sets_have_no_text() -> None:
    """And nobody says that one is missing."""
    text = read(sets()).text
    assert "The documents are sets" in text
    assert "The text is not here" not in text


def test_a_missing_text_is_a_quiet_note() -> None:
    """The others are shown; the reason stands once, with its command as code."""
    shape = newsroom()
    kept = shape.report["largest_clusters"][0]["kept"]
    del shape.texts[kept["source"], kept["row"]]
    page = report_page(shape.report, shape.run, shape.texts, texts_note="Not read; `minwise report <OUT>` adds them.")
    assert page.count("The text is not here") == 2
    assert page.count("<code>minwise report &lt;OUT&gt;</code> adds them.") == 1


def test_a_long_text_is_compared_as_far_as_it_goes() -> None:
    """What stands behind the first 10,000 characters is not shown, and the page says so."""
    shape = newsroom()
    for one in documents(shape):
        shape.texts[one["source"], one["row"]] = f"{'word ' * 2000}behind"
    page = shape.page()
    assert "behind" not in page
    assert "The first 10,000 characters." in page
    assert "The first 10,000 characters." not in newsroom().page()


def test_bytes_are_marked_by_the_character() -> None:
    """Shingles of bytes may begin inside a character; what is marked are whole ones."""
    text = "Grüße aus Zürich, schöne Grüße an alle, die dort über die Brücke gehen. "
    shape = newsroom()
    settings = shape.report["settings"]
    settings["shingle"] = "byte:8"
    for place, one in enumerate(documents(shape)):
        shape.texts[one["source"], one["row"]] = f"{text}{place}"
    assert f"<mark>{text.strip()}" in shape.page()


def test_an_audit_is_on_the_curve_and_in_a_table() -> None:
    """A mark for each bin with pairs, a row for each bin, the suggestion as one would type it."""
    tree = read(audited())
    assert sum(one == "measured" for one in tree.attributes("class")) == 11
    assert "0.9934 0.9800 – 0.9970" in tree.text
    assert "0.40 – 0.45 200" in tree.text
    assert "--threshold 0.66 --bands 30 --rows 7" in tree.text
    assert "Not measured yet" not in tree.text


def test_a_similarity_below_the_threshold_does_not_look_like_it() -> None:
    """0.79999 is not 0.8."""
    shape = newsroom()
    shape.report["settings"]["threshold"] = 0.8
    left, right = documents(shape)[:2]
    closest = [{"similarity": 0.79999, "left": left, "right": right}]
    shape.report["just_below"] = {"from": 0.75, "pairs": 1, "closest": closest}
    assert '<span class="similarity">0.7999</span>' in shape.page()


def test_a_long_name_is_shortened_but_there() -> None:
    """Beginning and end are seen, all of it when pointed at, and the box has the whole id."""
    shape = newsroom()
    one = shape.report["largest_clusters"][0]["members"][0]
    one["id"] = f"{LONG}end"
    tree = read(shape)
    assert one["id"] not in tree.text
    assert one["id"] in list(tree.attributes("title"))
    assert f'"{one["id"]}"' in list(tree.attributes("data-id"))


def test_the_page_is_quickly_made() -> None:
    """Ten clusters with three members, ten pairs, all texts of 20 kB: the least of ten times, each beside a reading."""
    shape = newsroom()
    text = NEWSROOM.read_text(encoding="utf-8")
    shape.report["largest_clusters"] = [_cluster(number) for number in range(10)]
    pairs = [
        {"similarity": 0.79, "left": _document(90, 2 * at), "right": _document(90, 2 * at + 1)} for at in range(10)
    ]
    shape.report["just_below"] = {"from": 0.75, "pairs": 10, "closest": pairs}
    for place, one in enumerate(documents(shape)):
        shape.texts[one["source"], one["row"]] = text[place * 7 : place * 7 + 20_000]
    page = shape.page()
    assert page.count('class="similarity"') == 40
    times = [(seconds(shape.page), seconds(lambda: Tree(page))) for _ in range(10)]
    making, reading = (min(column) for column in zip(*times, strict=True))
    assert making < PAGE_AGAINST_READING * reading


def seconds(work: Callable[[], object]) -> float:
    """What a piece of work takes of the processor."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _cluster(number: int) -> dict[str, object]:
    members = [{**_document(number, row), "similarity": 0.9} for row in range(1, 4)]
    return {"kept": _document(number, 0), "size": 4, "members": members}


def _document(number: int, row: int) -> dict[str, object]:
    return {"id": f"{number}-{row}", "source": f"source-{number}", "row": row}
