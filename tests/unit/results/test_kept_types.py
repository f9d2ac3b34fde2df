"""The kept documents have the type of the input."""

from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import InputError

TEXTS = ["the ferry leaves at six from the pier", "The ferry leaves at six, from the pier.", "no boat today", "x"]
ROWS = [{"text": text, "n": number} for number, text in enumerate(TEXTS)]
KEPT = [0, 2, 3]
TABLE = pa.Table.from_pylist(ROWS)


def test_a_dataframe_of_pandas_keeps_its_index_and_types() -> None:
    frame = pd.DataFrame(ROWS, index=pd.Index(["a", "b", "b", "d"], name="key")).astype({"n": "int16"})
    result = mw.dedup(frame)
    pd.testing.assert_frame_equal(result.kept, frame[result.keep])
    assert result.kept.index.tolist() == ["a", "b", "d"]


def test_a_series_of_pandas_gives_a_series() -> None:
    series = pd.Series(TEXTS, index=[7, 8, 9, 10], name="body")
    pd.testing.assert_series_equal(mw.dedup(series).kept, series.iloc[KEPT])


def test_rows_added_to_a_dataframe_later_do_not_matter() -> None:
    frame = pd.DataFrame(ROWS)
    result = mw.dedup(frame)
    frame.loc[99] = ["later", 99]
    assert result.kept["n"].tolist() == KEPT


def test_a_dataframe_of_polars_gives_one() -> None:
    frame = pl.DataFrame(ROWS)
    assert mw.dedup(frame).kept.equals(frame[KEPT])
    assert mw.dedup(frame["text"], threshold=0.9).kept.to_list() == [TEXTS[number] for number in KEPT]
    assert mw.dedup(frame.clear(), on_error="skip").kept.shape == (0, 2)


@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "selected"])
def test_a_hugging_face_dataset_gives_one(shuffled: bool) -> None:
    dataset: Any = datasets.Dataset.from_list(ROWS)
    dataset = dataset.select([2, 0, 1, 3]) if shuffled else dataset
    kept = mw.dedup(dataset).kept
    assert isinstance(kept, datasets.Dataset)
    assert sorted(kept["n"]) == KEPT
    assert kept.features == dataset.features


def test_a_dataset_is_read_without_a_copy() -> None:
    dataset: Any = datasets.Dataset.from_list(ROWS)
    from minwise.inputs.memory_sources import as_table

    addresses = [
        table.column("text").chunk(0).buffers()[2].address for table in (dataset.data.table, as_table(dataset))
    ]
    assert addresses[0] == addresses[1]


@pytest.mark.parametrize("call", [mw.dedup, mw.pairs], ids=["dedup", "pairs"])
@pytest.mark.parametrize("settings", [{}, {"shingle": "set"}], ids=["texts", "sets"])
def test_splits_are_refused_with_the_one_to_choose(call: Any, settings: dict[str, Any]) -> None:  # noqa: ANN401
    splits = datasets.DatasetDict({name: datasets.Dataset.from_list(ROWS) for name in ("train", "test")})
    message = error_message(InputError, lambda: call(splits, **settings))
    assert message == 'source must be one split, got a DatasetDict of train, test; choose one, such as ds["train"]'


def test_a_streamed_dataset_gives_a_list() -> None:
    streamed: Any = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
    assert mw.dedup(streamed).kept == [ROWS[number] for number in KEPT]


@pytest.mark.parametrize("given", [TABLE, TABLE.to_batches()[0], TABLE.to_reader()], ids=["table", "batch", "reader"])
def test_arrow_data_gives_a_table(given: Any) -> None:  # noqa: ANN401 - Arrow data
    kept = mw.dedup(given).kept
    assert isinstance(kept, pa.Table)
    assert kept.equals(TABLE.take(KEPT))


def test_lists_and_iterators_give_lists_of_the_given_objects() -> None:
    assert mw.dedup(TEXTS).kept == [TEXTS[number] for number in KEPT]
    assert mw.dedup(tuple(TEXTS)).kept == [TEXTS[number] for number in KEPT]
    assert mw.dedup(iter(TEXTS)).kept == [TEXTS[number] for number in KEPT]
    kept = mw.dedup(row for row in ROWS).kept
    assert [id(row) for row in kept] == [id(ROWS[number]) for number in KEPT]


def test_an_array_of_numpy_gives_an_array() -> None:
    kept = mw.dedup(np.array(TEXTS, dtype=object)).kept
    assert isinstance(kept, np.ndarray)
    assert kept.tolist() == [TEXTS[number] for number in KEPT]


def test_sets_give_sets() -> None:
    given = [{1, 2, 3}, {3, 2, 1}, {4}]
    assert mw.dedup(given, shingle="set").kept == [{1, 2, 3}, {4}]


def test_a_reference_corpus_and_another_threshold_keep_the_type() -> None:
    frame = pd.DataFrame(ROWS)
    result = mw.dedup(frame, against=[TEXTS[2]], threshold=0.5)
    assert result.kept.index.tolist() == [0, 3]
    assert result.rethreshold(0.9).kept.index.tolist() == [0, 3]
