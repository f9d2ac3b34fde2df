"""Notes of reports: short texts, repeated ids, empty and identical texts, and how files were read."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minwise as mw

WORDS = [f"word{number}" for number in range(500)]


def texts(words: int, count: int = 200, seed: int = 1) -> list[str]:
    """Return different texts of a number of words."""
    rng = random.Random(seed)
    return [" ".join(rng.sample(WORDS, words)) for _ in range(count)]


def notes(source: Any, **settings: Any) -> list[str]:  # noqa: ANN401 - any input
    report = mw.dedup(source, **settings).report
    found: list[str] = report["notes"]
    return found


def test_four_words_under_shingles_of_five_are_too_short() -> None:
    (note,) = notes(texts(4))
    assert note == (
        "about 200 of 200 documents have fewer than the 5 words of a shingle, so they match only if they are the same "
        "in full; shingle='char:5' or shingle='word:2' fits such texts"
    )


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (texts(5), {}),
        (texts(4), {"shingle": "word:4"}),
        (texts(4), {"shingle": "char:5"}),
        (texts(4, 20) + texts(9, 30), {}),
        (texts(2, 9), {}),
        ([""] * 9 + texts(6, 12), {}),
    ],
    ids=["five words", "word:4", "char:5", "fewer than half", "a handful", "empty ones do not count"],
)
def test_texts_that_are_long_enough_have_no_note(source: list[str], settings: dict[str, Any]) -> None:
    assert notes(source, **settings) == []


@pytest.mark.parametrize(
    ("source", "shingle", "fits"),
    [
        (texts(2), "word:3", "shingle='char:5' fits"),
        (texts(6), "word:8", "shingle='char:5' or shingle='word:3' fits"),
        ([text[:7] for text in texts(3)], "char:9", "shingle='char:3' fits"),
    ],
)
def test_the_proposed_shingle_follows_from_the_lengths(source: list[str], shingle: str, fits: str) -> None:
    assert any(fits in note for note in notes(source, shingle=shingle))


def test_the_note_is_right_where_short_and_long_texts_alternate_in_large_files(tmp_path: Path) -> None:
    """The sample covers the whole file, not only its beginning."""
    short, long = texts(3, 6000), texts(9, 4000)
    pq.write_table(pa.table({"text": long[:100] + short + long[100:]}), tmp_path / "short.parquet")
    pq.write_table(pa.table({"text": short[:100] + long + short[100:3000]}), tmp_path / "long.parquet")
    assert len(notes(tmp_path / "short.parquet")) == 1
    assert notes(tmp_path / "long.parquet") == []


def test_one_endless_word_is_a_short_text() -> None:
    rng = random.Random(3)
    assert "shingle='char:5' fits" in notes(["".join(rng.choices("acgt", k=5000)) for _ in range(20)])[0]


def test_batches_do_not_change_a_note() -> None:
    table = pa.table({"text": texts(4, 3000)})
    chunks = pa.concat_tables([table.slice(start, 300) for start in range(0, 3000, 300)])
    assert notes(table) == notes(chunks) != []


def test_repeated_ids_are_noted_with_the_most_frequent_one() -> None:
    rows = [{"id": name, "text": text} for name, text in zip("abcxbxxxx", texts(8, 9), strict=True)]
    assert notes(rows) == [
        "5 rows share the id 'x' (2 ids occur more than once); rows are told apart by source and row"
    ]
    assert notes([{**row, "id": number} for number, row in enumerate(rows)]) == []


@pytest.mark.parametrize(("empty", "noted"), [(90, True), (89, False)])
def test_a_text_column_that_is_almost_always_empty_is_noted(empty: int, noted: bool) -> None:
    source = [{"body": text} for text in [""] * empty + texts(8, 100 - empty)]
    note = "90 of 100 documents are empty; check that 'body' is the column of the text"
    assert notes(source, text_column="body") == ([note] if noted else [])


@pytest.mark.parametrize(("same", "noted"), [(90, True), (89, False)])
def test_a_text_column_that_is_almost_always_identical_is_noted(same: int, noted: bool) -> None:
    source = texts(8, 1, seed=2) * same + texts(8, 100 - same)
    note = "90 of 100 documents are identical; check that 'text' is the column of the text"
    assert notes(source) == ([note] if noted else [])


def test_few_documents_and_a_reference_corpus_have_no_note() -> None:
    assert notes([""] * 19) == []
    assert notes(texts(8, 30), against=[""] * 500) == []


def test_pairs_clusters_and_audit_have_the_same_notes(tmp_path: Path) -> None:
    source = texts(4)
    expected = notes(source)
    assert mw.write_pairs(source, tmp_path / "p.jsonl")["notes"] == expected
    assert mw.write_clusters(source, tmp_path / "c.jsonl")["notes"] == expected
    audit = mw.audit(source)
    assert audit.notes == audit.to_dict()["notes"] == expected


def test_inputs_tell_how_files_were_read_and_what_was_skipped(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("\n".join(texts(8, 5, seed=len(name))))
    (tmp_path / ".hidden").write_text("x")
    report = mw.dedup(tmp_path, format="lines").report
    assert report["inputs"]["read_as"] == [{"how": "one document per line", "files": 2}]
    assert sum(report["inputs"]["skipped"].values()) == 1
    assert "2 files read as one document per line" in report["notes"]
