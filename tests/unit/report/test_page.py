"""Report page: well-formed and complete for every shape of a report, and rendered quickly."""

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

# Time to render the page, divided by the time to parse it with html.parser, which is plain Python too: 1.7 to 3.0
# measured on a busy and on an idle machine. With a quadratic search for shared passages it would be hundreds.
RENDER_PER_PARSE = 6
VOID = {"meta", "input", "br"}
every_shape = pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)


class Tree(HTMLParser):
    """Parses a page and asserts that its elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an empty SVG element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Assert that the innermost element is closed first."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Record visible text."""
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)

    @property
    def text(self) -> str:
        """The visible text, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def attributes(self, name: str) -> Iterator[str]:
        """Return every value of an attribute."""
        return (attributes[name] for _, attributes in self.elements if name in attributes)


def read(shape: Shape) -> Tree:
    """Return the parsed page of a shape."""
    return Tree(shape.page())


@every_shape
def test_every_page_is_well_formed(make: Callable[[], Shape]) -> None:
    """Elements are closed in order, ids are unique, and every reference to an id has a target."""
    tree = read(make())
    ids = Counter(tree.attributes("id"))
    assert max(ids.values()) == 1
    references = [name for value in tree.attributes("aria-labelledby") for name in value.split()]
    references += [value[1:] for value in tree.attributes("href")]
    assert references
    assert set(references) <= set(ids)


@every_shape
def test_headings_skip_no_level(make: Callable[[], Shape]) -> None:
    levels = [int(tag[1]) for tag, _ in read(make()).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@every_shape
def test_every_page_has_the_counts_of_the_report(make: Callable[[], Shape]) -> None:
    shape = make()
    page = shape.page()
    counts = shape.report["counts"]
    for name in ("read", "kept", "removed", "quarantined", "empty"):
        assert re.search(rf'id="figure-{name}">.*?<data value="{counts[name]}">{counts[name]:,}</data>', page), name


@every_shape
def test_no_null_or_nan_reaches_the_page(make: Callable[[], Shape]) -> None:
    assert not re.search(r"\b(None|nan|null|inf)\b", read(make()).text)


def test_only_some_of_many_sources_and_warnings_are_shown() -> None:
    """The fifty sources that lost the most documents, and how many are left out."""
    shape = many_sources(3000)
    tree = read(shape)
    assert tree.text.count("data/part-") == 50 + 5 + 100
    others = sorted(source["removed"] for source in shape.report["sources"])[:-50]
    assert f"Together, 2,950 more sources lost {sum(others):,} documents" in tree.text
    assert "3,000 warnings" in tree.text
    assert "2,895 more in report.json" in tree.text
    assert len(shape.page()) < 200_000


def test_a_reference_corpus_is_mentioned_below_the_table() -> None:
    text = read(against()).text
    assert "Reference corpus (against): 1 source with 40 documents, never removed." in text
    assert "2 of 40 documents kept." in text


def test_sources_with_the_most_removed_documents_come_first() -> None:
    """A share above a half is marked."""
    page = many_sources(100).page()
    assert re.findall(r"data/part-000(\d\d)\.jsonl</span>", page)[:3] == ["89", "88", "87"]
    assert page.count('class="bad"') == 89 - 50


def test_estimates_are_marked_as_such() -> None:
    text = read(estimated()).text
    assert "≈ 0." in text or "≈ 1." in text
    assert "estimated from signatures" in text
    assert "Similarities are estimates" in text
    assert "≈" not in read(newsroom()).text


def test_members_joined_through_others_are_marked() -> None:
    page = chained().page()
    assert page.count('<span class="tag">joined through others</span>') == 1
    assert "they were joined through others" in page
    assert ">1 warning</h2>" in page
    assert "joined through others" not in newsroom().page()


def test_sets_have_no_missing_text() -> None:
    text = read(sets()).text
    assert "The documents are sets" in text
    assert "is not shown" not in text


def test_a_missing_text_is_explained_at_its_place_and_the_remedy_once() -> None:
    shape = newsroom()
    kept = shape.report["largest_clusters"][0]["kept"]
    del shape.texts[kept["source"], kept["row"]]
    note = "Not read; `minwise report <OUT>` adds them."
    reasons = {(kept["source"], kept["row"]): "the <input> was deleted"}
    page = report_page(shape.report, shape.run, shape.texts, texts_note=note, reasons=reasons)
    assert page.count(f"The text of {kept['id']} is not shown: the &lt;input&gt; was deleted.") == 2
    assert page.count("is not shown") == 2
    assert page.count("<code>minwise report &lt;OUT&gt;</code> adds them.") == 1


def test_texts_left_out_of_a_large_cluster_are_explained() -> None:
    """Only its first three members have texts on the page."""
    left_out = "Only the first 3 texts are shown, to keep this page small."
    shape = newsroom()
    assert left_out not in shape.page()
    shape.report["largest_clusters"][0]["members"] *= 4
    assert shape.page().count(left_out) == 1
    shape.texts.clear()
    assert left_out not in shape.page()


def test_pairs_below_the_threshold_have_a_legend_if_nothing_was_removed() -> None:
    shape = newsroom()
    assert shape.page().count('<p class="legend">') == 1
    left, right = documents(shape)[:2]
    closest = [{"similarity": 0.5, "left": left, "right": right}]
    shape.report.update(largest_clusters=[], just_below={"from": 0.5, "pairs": 1, "closest": closest})
    assert shape.page().count('<p class="legend">') == 1


def test_only_the_start_of_a_long_text_is_shown() -> None:
    shape = newsroom()
    for document in documents(shape):
        shape.texts[document["source"], document["row"]] = f"{'word ' * 2000}behind"
    page = shape.page()
    assert "behind" not in page
    assert "Only the first 10,000 characters are compared here" in page
    assert "Only the first 10,000 characters are compared here" not in newsroom().page()


def test_byte_shingles_mark_whole_characters() -> None:
    """Byte shingles may start inside a character."""
    text = "Grüße aus Zürich, schöne Grüße an alle, die dort über die Brücke gehen. "
    shape = newsroom()
    settings = shape.report["settings"]
    settings["shingle"] = "byte:8"
    for number, document in enumerate(documents(shape)):
        shape.texts[document["source"], document["row"]] = f"{text}{number}"
    assert f'<span class="shared">{text.strip()}' in shape.page()


def test_an_audit_is_on_the_curve_and_in_a_table() -> None:
    """A marker for each bin with pairs, a row for each bin, and the suggested options."""
    tree = read(audited())
    assert sum(name == "measured" for name in tree.attributes("class")) == 11
    assert "0.9934 0.9800 – 0.9970" in tree.text
    assert "0.40 – 0.45 200" in tree.text
    assert "--threshold 0.66 --bands 30 --rows 7" in tree.text
    assert "Not measured." not in tree.text


def test_a_similarity_below_the_threshold_is_not_rounded_up_to_it() -> None:
    shape = newsroom()
    shape.report["settings"]["threshold"] = 0.8
    left, right = documents(shape)[:2]
    closest = [{"similarity": 0.79999, "left": left, "right": right}]
    shape.report["just_below"] = {"from": 0.75, "pairs": 1, "closest": closest}
    assert '<span class="similarity">0.7999</span>' in shape.page()


def test_a_long_name_is_shortened_except_in_title_and_checkbox() -> None:
    shape = newsroom()
    name = f"{LONG}end"
    shape.report["largest_clusters"][0]["members"][0]["id"] = name
    tree = read(shape)
    assert name not in tree.text
    assert name in list(tree.attributes("title"))
    assert f'"{name}"' in list(tree.attributes("data-id"))


def test_the_page_is_rendered_quickly() -> None:
    """Ten clusters of four, ten pairs, texts of 20 kB: the lowest of ten times, relative to parsing the page."""
    shape = newsroom()
    text = NEWSROOM.read_text(encoding="utf-8")
    shape.report["largest_clusters"] = [_cluster(number) for number in range(10)]
    pairs = [
        {"similarity": 0.79, "left": _document(90, 2 * at), "right": _document(90, 2 * at + 1)} for at in range(10)
    ]
    shape.report["just_below"] = {"from": 0.75, "pairs": 10, "closest": pairs}
    for number, document in enumerate(documents(shape)):
        shape.texts[document["source"], document["row"]] = text[number * 7 : number * 7 + 20_000]
    page = shape.page()
    assert page.count('class="similarity"') == 40
    times = [(seconds(shape.page), seconds(lambda: Tree(page))) for _ in range(10)]
    rendering, parsing = (min(column) for column in zip(*times, strict=True))
    assert rendering < RENDER_PER_PARSE * parsing


def seconds(function: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


def _cluster(number: int) -> dict[str, object]:
    members = [{**_document(number, row), "similarity": 0.9} for row in range(1, 4)]
    return {"kept": _document(number, 0), "size": 4, "members": members}


def _document(number: int, row: int) -> dict[str, object]:
    return {"id": f"{number}-{row}", "source": f"source-{number}", "row": row}
