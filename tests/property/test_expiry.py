"""After an expiry, an index gives the answers of one that never had the documents."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.index_faults.children import fast_folder
from support.index_oracle import storing
from support.strategies import effort

import minwise as mw
from minwise.index import expiry, writer

words = st.sampled_from("abcdefg")
texts = st.lists(words, max_size=7).map(" ".join)
# A time in each form; whether it is before the hour in question follows from the number.
HOUR = 3600


def written(hours: int, form: str) -> object:
    """Return a time of some hours after 1973 in one of the forms."""
    seconds = 100_000_000 + hours * HOUR
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return {"seconds": seconds, "digits": str(seconds), "float": seconds + 0.5, "iso": moment.isoformat()}[form]


times = st.builds(written, st.integers(0, 9), st.sampled_from(("seconds", "digits", "float", "iso")))
metadata = st.one_of(
    st.none(),
    st.just({}),
    st.builds(lambda value: {"created": value, "n": 1}, times | st.sampled_from(("", "soon", None, [], True))),
)
documents = st.lists(st.tuples(texts, metadata), max_size=40)


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    """Let little data create many segments and transactions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FLUSH_DOCUMENTS", 4)
        patch.setattr(expiry, "STEP_DOCUMENTS", 3)
        yield


def stays(about: dict[str, Any] | None, hours: int) -> bool:
    """Return whether a document has no time, or one that is not before some hours after 1973."""
    value = (about or {}).get("created")
    if isinstance(value, str) and "T" in value:
        value = datetime.fromisoformat(value).timestamp()
    elif isinstance(value, str) and value.isdigit():
        value = int(value)
    return isinstance(value, (bool, str, list, type(None))) or value >= 100_000_000 + hours * HOUR


def answers(index: mw.Index) -> list[object]:
    """Return the documents in their order, and the answer to each text without and with a threshold."""
    listed = list(reversed(index.newest(1000).documents))
    queries = sorted({f"{word} {other} c" for word in "abcdefg" for other in "abcdefg"})
    found = [index.query_many(queries, threshold, 3) for threshold in (None, 0)]
    return [[(document.id, document.metadata, document.text) for document in listed], found, len(index)]


@effort(0.5)
@given(
    given=documents,
    later=documents,
    hours=st.integers(0, 10),
    stored=st.sampled_from(("shingles", "text", "sketch")),
    batch=st.integers(1, 9),
)
def test_the_answers_are_those_without_the_documents(
    given: list[Any], later: list[Any], hours: int, stored: str, batch: int
) -> None:
    """Also after documents were added later, decisions were made, and the index was compacted."""
    before = datetime.fromtimestamp(100_000_000 + hours * HOUR, timezone.utc)
    options: dict[str, Any] = {"shingle": "word:1", "threshold": 0.5, "bands": 8, "rows": 1, "seed": 3}
    with fast_folder() as folder:
        indexes = [mw.Index.create(folder / name, **options, **storing(stored)) for name in ("all", "kept")]
        rows = [(number, *row) for number, row in enumerate(given)]
        for index, some in zip(indexes, (rows, [row for row in rows if stays(row[2], hours)]), strict=True):
            for start in range(0, len(some), batch):
                ids, contents, about = zip(*some[start : start + batch], strict=True)
                index.add(ids, contents, about)
        assert indexes[0].expire(before=before, time_field="created").expired == len(rows) - len(indexes[1])
        assert answers(indexes[0]) == answers(indexes[1])
        new = [(len(rows) + number, *row) for number, row in enumerate(later)]
        decided = [index.add_unique(*map(list, zip(*new, strict=True))) if new else [] for index in indexes]
        assert decided[0] == decided[1]
        assert answers(indexes[0]) == answers(indexes[1])
        indexes[0].compact()
        assert answers(indexes[0]) == answers(indexes[1])
        for index in indexes:
            assert index.verify() == []
            index.close()
