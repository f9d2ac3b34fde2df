"""Reading of texts: every supported form gives the same shingles, and an invalid text is refused by its number."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.text.chunks import BATCH_DOCUMENTS, SMALL_CHUNK, read_texts

TEXTS = [
    "the harbour wakes before the town does, and the gulls know it",
    "",
    "Die Fähre legt um sechs Uhr ab; wer später kommt, wartet bis acht",
    "港の朝は早い。漁師たちは網を引く",
    "x",
    "паром уходит в шесть часов утра 🚢🌊",
    " \t\n",
]
N = len(TEXTS)
ENCODED = [text.encode() for text in TEXTS]
SHINGLER = mw.Shingler("word:2")
EXPECTED = SHINGLER.shingle(TEXTS)

FLAT = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
VIEWS = [pa.string_view(), pa.binary_view()]


class Stream:
    """Column that implements only the Arrow C stream interface."""

    def __init__(self, texts: list[str]) -> None:
        self.column = pa.chunked_array([texts[:3], texts[3:]], type=pa.string())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.column.__arrow_c_stream__(requested_schema)


class OneArray:
    """Column that implements only the Arrow C array interface."""

    def __init__(self, texts: list[str]) -> None:
        self.array = pa.array(texts, type=pa.large_string())

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.array.__arrow_c_array__(requested_schema)


def array_of(kind: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the texts as an Arrow array of one type."""
    return pa.array(
        ENCODED if "binary" in str(kind) else TEXTS, type=pa.binary() if "binary" in str(kind) else None
    ).cast(kind)


def sliced(array: Any) -> Any:  # noqa: ANN401 - as above
    """Return the same texts as a slice from the middle of a longer array."""
    longer = pa.concat_arrays([array[2:4], array, array[:1]])
    return longer[2 : 2 + N]


def with_validity() -> Any:  # noqa: ANN401 - as above
    """Return an array with a validity bitmap but no nulls."""
    return pa.concat_arrays([pa.array([None], type=pa.string()), pa.array(TEXTS)])[1:]


INPUTS: dict[str, Callable[[], Any]] = {
    "tuple": lambda: tuple(TEXTS),
    "generator": lambda: (text for text in TEXTS),
    "dictionary values": lambda: dict(enumerate(TEXTS)).values(),
    "list of bytes": lambda: ENCODED,
    "str and bytes": lambda: [*TEXTS[:2], *ENCODED[2:]],
    **{f"arrow {kind}": partial(array_of, kind) for kind in FLAT + VIEWS},
    **{f"sliced {kind}": partial(sliced, array_of(kind)) for kind in FLAT + VIEWS},
    "arrow dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "sliced dictionary": lambda: sliced(pa.array(TEXTS)).dictionary_encode()[:],
    "arrow with a validity bitmap": with_validity,
    "chunks, some of them empty": lambda: pa.chunked_array([[], TEXTS[:2], [], TEXTS[2:], []], type=pa.string()),
    "sliced chunks": lambda: pa.chunked_array([["?", *TEXTS[:2]], TEXTS[2:]], type=pa.large_string())[1:],
    "chunks of dictionaries": lambda: pa.chunked_array(
        [pa.array(TEXTS[:3]).dictionary_encode(), pa.array(TEXTS[3:]).dictionary_encode()]
    ),
    "table column": lambda: pa.table({"text": TEXTS})["text"],
    "pandas": lambda: pd.Series(TEXTS),
    "pandas object": lambda: pd.Series(TEXTS, dtype=object),
    "pandas string": lambda: pd.Series(TEXTS, dtype="string"),
    "pandas arrow": lambda: pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": lambda: pd.Series(TEXTS, dtype="category"),
    "pandas filtered": lambda: pd.Series(["?", *TEXTS, "?"], dtype=object)[lambda s: s != "?"],
    "pandas bytes": lambda: pd.Series(ENCODED, dtype=object),
    "pandas index": lambda: pd.Index(TEXTS),
    "polars": lambda: pl.Series(TEXTS),
    "polars chunks": lambda: pl.concat([pl.Series(TEXTS[:2]), pl.Series(TEXTS[2:])], rechunk=False),
    "polars slice": lambda: pl.Series(["?", *TEXTS, "?"])[1:-1],
    "polars binary": lambda: pl.Series(ENCODED),
    "polars categorical": lambda: pl.Series(TEXTS, dtype=pl.Categorical),
    "numpy object": lambda: np.array(TEXTS, dtype=object),
    "numpy unicode": lambda: np.array(TEXTS),
    "Arrow C stream": lambda: Stream(TEXTS),
    "Arrow C array": lambda: OneArray(TEXTS),
}

NOTHING: dict[str, Any] = {
    "list": [],
    "generator": iter(()),
    "arrow": pa.array([], type=pa.string()),
    "arrow of no type": pa.array([]),
    "no chunks": pa.chunked_array([], type=pa.string()),
    "empty chunks": pa.chunked_array([[], []], type=pa.large_string()),
    "pandas": pd.Series([], dtype="string"),
    "polars": pl.Series([], dtype=pl.String),
    "numpy": np.array([], dtype=object),
}

CONSUMERS: dict[str, Callable[..., object]] = {
    "shingle": SHINGLER.shingle,
    "sketch_texts": lambda texts, **options: mw.FastSketch(slots=8).sketch_texts(texts, SHINGLER, **options),
}

every_consumer = pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_texts_gives_the_shingles_of_a_list(kind: str) -> None:
    found = SHINGLER.shingle(INPUTS[kind]())
    np.testing.assert_array_equal(found.offsets, EXPECTED.offsets)
    np.testing.assert_array_equal(found.hashes, EXPECTED.hashes)
    assert found.settings == EXPECTED.settings


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_texts_gives_the_signatures_of_a_list(kind: str) -> None:
    """The fused path reads the same way, whether or not the number of texts is known in advance."""
    scheme = mw.FastSketch(slots=16)
    found = scheme.sketch_texts(INPUTS[kind](), SHINGLER, sizes=True)
    expected = scheme.sketch(EXPECTED)
    np.testing.assert_array_equal(found.slots, expected.slots)
    np.testing.assert_array_equal(found.sizes, expected.sizes)


@pytest.mark.parametrize("kind", NOTHING)
@every_consumer
def test_no_texts_give_no_results(kind: str, consume: Callable[..., Any]) -> None:
    assert len(consume(NOTHING[kind])) == 0


@pytest.mark.parametrize("array", [array_of(kind) for kind in FLAT], ids=str)
def test_arrow_texts_are_not_copied(array: pa.Array) -> None:
    """Offsets and bytes are those of the Arrow buffers, by address."""
    (chunk,) = read_texts(array)
    assert chunk.data.ctypes.data == array.buffers()[2].address
    assert chunk.offsets.ctypes.data == array.buffers()[1].address


@pytest.mark.parametrize("array", [sliced(array_of(kind)) for kind in FLAT], ids=str)
def test_sliced_arrow_texts_are_not_copied(array: pa.Array) -> None:
    """A slice starts later in the offsets and shares the bytes."""
    (chunk,) = read_texts(array)
    assert array.offset == 2
    assert chunk.data.ctypes.data == array.buffers()[2].address
    assert chunk.offsets.ctypes.data == array.buffers()[1].address + 2 * chunk.offsets.itemsize


def test_arrow_backed_pandas_texts_are_not_copied() -> None:
    array = pa.array(TEXTS, type=pa.large_string())
    (chunk,) = read_texts(pd.Series(pd.arrays.ArrowExtensionArray(array)))
    assert chunk.data.ctypes.data == array.buffers()[2].address


def test_chunks_have_the_number_of_their_first_text() -> None:
    pieces = [["a"] * SMALL_CHUNK, [], ["b"] * 2 * SMALL_CHUNK, ["c"] * SMALL_CHUNK]
    chunks = list(read_texts(pa.chunked_array(pieces)))
    found = [(chunk.first // SMALL_CHUNK, len(chunk) // SMALL_CHUNK) for chunk in chunks]
    assert found == [(0, 1), (1, 0), (1, 2), (3, 1)]


def test_tiny_chunks_are_joined() -> None:
    chunks = list(read_texts(pa.chunked_array([[word] for word in "abcd"])))
    assert [(chunk.first, len(chunk)) for chunk in chunks] == [(0, 4)]


def test_objects_of_a_generator_are_read_in_batches() -> None:
    chunks = read_texts("word" for _ in range(BATCH_DOCUMENTS + 1))
    assert [(chunk.first, len(chunk)) for chunk in chunks] == [(0, BATCH_DOCUMENTS), (BATCH_DOCUMENTS, 1)]


def test_an_exception_of_the_callers_generator_passes_through() -> None:
    def texts() -> Any:  # noqa: ANN401 - a generator that fails
        yield "a"
        raise RuntimeError("the disk went away")

    with pytest.raises(RuntimeError, match="the disk went away"):
        SHINGLER.shingle(texts())


NULLS: dict[str, tuple[Any, int]] = {
    "list": (["a", None, None], 1),
    "first": ([None, "a"], 0),
    "list of bytes": ([b"a", None], 1),
    "second batch": (["a"] * BATCH_DOCUMENTS + ["b", None], BATCH_DOCUMENTS + 1),
    "arrow": (pa.array(["a", "b", None]), 2),
    "arrow slice": (pa.array([None, "a", "b", None])[1:], 2),
    "arrow view": (pa.array(["a", None], type=pa.string_view()), 1),
    "arrow nulls": (pa.nulls(3), 0),
    "arrow dictionary, its index": (pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array(["a"])), 1),
    "arrow dictionary, its value": (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), 1),
    "second chunk": (pa.chunked_array([["a", "b"], [], ["c", None]]), 3),
    "pandas object": (pd.Series(["a", None], dtype=object), 1),
    "pandas not a number": (pd.Series(["a", float("nan")], dtype=object), 1),
    "pandas string": (pd.Series(["a", None], dtype="string"), 1),
    "pandas category": (pd.Series(["a", None], dtype="category"), 1),
    "polars": (pl.Series(["a", None]), 1),
    "polars second chunk": (pl.concat([pl.Series(["a"]), pl.Series(["b", None])], rechunk=False), 2),
    "numpy": (np.array(["a", None], dtype=object), 1),
}


@pytest.mark.parametrize("kind", NULLS)
@every_consumer
def test_a_null_is_refused_by_its_number(kind: str, consume: Callable[..., object]) -> None:
    """The number counts over all chunks; the message contains the remedy."""
    texts, number = NULLS[kind]
    assert error_message(InputError, lambda: consume(texts)).startswith(f"document {number} is null; give ''")


NOT_TEXTS: dict[str, tuple[Any, str]] = {
    "int": (["a", 3], "document 1 must be str or bytes, got int"),
    "only ints": ([1, 2], "document 0 must be str or bytes, got int"),
    "float": (["a", "b", 1.5], "document 2 must be str or bytes, got float"),
    "not a number": (["a", float("nan")], "document 1 must be str or bytes, got float"),
    "nested list": (["a", ["b"]], "document 1 must be str or bytes, got list"),
    "bytes and int": ([b"a", 3], "document 1 must be str or bytes, got int"),
    "second batch": (["a"] * BATCH_DOCUMENTS + [3], f"document {BATCH_DOCUMENTS} must be str or bytes, got int"),
    "null before an int": ([None, 3], "document 0 is null"),
    "numpy ints": (np.array([1, 2]), "document 0 must be str or bytes, got int64"),
    "two dimensions": (np.array([["a", "b"]], dtype=object), "document 0 must be str or bytes, got ndarray"),
    "pandas object": (pd.Series(["a", 3], dtype=object), "document 1 must be str or bytes, got int"),
}


@pytest.mark.parametrize("kind", NOT_TEXTS)
@every_consumer
def test_a_value_that_is_not_a_text_is_refused_by_its_number(kind: str, consume: Callable[..., object]) -> None:
    texts, message = NOT_TEXTS[kind]
    assert error_message(InputError, lambda: consume(texts)).startswith(message)


CONTAINERS: dict[str, tuple[Any, str]] = {
    "str": ("one text", "got one str; write [text]"),
    "bytes": (b"one text", "got one bytes; write [text]"),
    "bytearray": (bytearray(b"one text"), "got one bytearray; write [text]"),
    "None": (None, "got NoneType"),
    "int": (3, "got int"),
    "dict": ({"a": "some text"}, "got dict"),
    "numpy scalar": (np.array("one text"), "got"),
    "polars lazy frame": (pl.LazyFrame({"text": ["a"]}), "got LazyFrame"),
    "polars expression": (pl.col("text"), "got Expr"),
}


@pytest.mark.parametrize("kind", CONTAINERS)
@every_consumer
def test_a_value_that_is_not_a_column_is_refused(kind: str, consume: Callable[..., object]) -> None:
    """In particular, one text is not read as a list of characters, nor a dict as its keys."""
    texts, message = CONTAINERS[kind]
    found = error_message(InputError, lambda: consume(texts))
    assert found.startswith("texts must be")
    assert message in found


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame({"text": ["a"], "id": [1]}),
    "polars": pl.DataFrame({"text": ["a"], "id": [1]}),
    "arrow table": pa.table({"text": ["a"], "id": [1]}),
    "arrow batch": pa.record_batch({"text": ["a"], "id": [1]}),
}


@pytest.mark.parametrize("kind", FRAMES)
@every_consumer
def test_a_table_is_refused_with_the_advice_to_pass_a_column(kind: str, consume: Callable[..., object]) -> None:
    found = error_message(InputError, lambda: consume(FRAMES[kind]))
    assert found.startswith("texts must be")
    assert "column" in found
    assert "cast" not in found


COLUMNS: dict[str, tuple[Any, str]] = {
    "arrow ints": (pa.array([1, 2]), "int64"),
    "arrow dictionary of ints": (pa.array([1, 2]).dictionary_encode(), "int64"),
    "arrow lists": (pa.array([["a"]]), "list"),
    "arrow dates": (pa.array([0], type=pa.date32()), "date32"),
    "chunks of ints": (pa.chunked_array([[1], [2]]), "int64"),
    "pandas ints": (pd.Series([1, 2]), "int64"),
    "polars floats": (pl.Series([0.5]), "double"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@every_consumer
def test_a_column_of_another_type_is_refused(kind: str, consume: Callable[..., object]) -> None:
    texts, name = COLUMNS[kind]
    found = error_message(InputError, lambda: consume(texts))
    assert found.startswith("texts must be strings or bytes, got an Arrow column of")
    assert name in found
    assert found.endswith("cast it to string")


@pytest.mark.parametrize("before", [0, 1, BATCH_DOCUMENTS - 1, BATCH_DOCUMENTS, BATCH_DOCUMENTS + 904])
@pytest.mark.parametrize("first", ["text", b"bytes"], ids=["str", "bytes"])
@every_consumer
def test_a_lone_surrogate_is_refused(before: int, first: str | bytes, consume: Callable[..., object]) -> None:
    """The position is counted in characters."""
    texts = [first, *["text"] * before, "ab\ud800c"]
    found = error_message(InputError, lambda: consume(texts))
    assert found == f"document {before + 1} is not valid Unicode: surrogates not allowed at 2"


def test_a_lone_surrogate_in_a_pandas_column_is_refused() -> None:
    """Pandas and pyarrow convert the column; the message is the same as for a list."""
    column = pd.Series(["text", "ab\ud800c"], dtype=object)
    assert error_message(InputError, lambda: SHINGLER.shingle(column)).startswith("document 1 is not valid Unicode")


INVALID: dict[str, tuple[bytes, int]] = {
    "never valid": (b"good \xff", 5),
    "cut short at the end": ("ab港".encode()[:-1], 2),
    "cut short before a letter": (b"\xe6\xb8a", 0),
    "continuation alone": (b"abcde\x80", 5),
    "overlong": (b"a\xc0\xaf", 1),
    "surrogate": (b"ab \xed\xa0\x80", 3),
    "beyond Unicode": (b"a b c \xf4\x90\x80\x80", 6),
    "after a long ASCII text": (b"word " * 100 + b"\xff", 500),
    "after a long Greek text": ("λόγος ".encode() * 100 + b"\xff", 1100),
}


@pytest.mark.parametrize("kind", INVALID)
@pytest.mark.parametrize("spec", ["word:2", "char:3"])
def test_invalid_utf8_is_refused_with_document_and_byte(kind: str, spec: str) -> None:
    text, byte = INVALID[kind]
    found = error_message(InputError, lambda: mw.Shingler(spec).shingle([b"fine", text]))
    assert found == f"document 1 is not valid UTF-8 at byte {byte}"


@pytest.mark.parametrize("before", [0, BATCH_DOCUMENTS - 1, BATCH_DOCUMENTS, BATCH_DOCUMENTS + 904])
@pytest.mark.parametrize("threads", [1, 2])
@every_consumer
def test_invalid_utf8_is_numbered_across_batches(before: int, threads: int, consume: Callable[..., object]) -> None:
    texts = [*[b"fine"] * before, b"good \xff", b"fine"]
    found = error_message(InputError, lambda: consume(texts, threads=threads))
    assert found == f"document {before} is not valid UTF-8 at byte 5"


@every_consumer
def test_invalid_utf8_is_numbered_across_chunks(consume: Callable[..., object]) -> None:
    """Empty chunks and slices included."""
    chunks = [pa.array([b"x", b"a", b"b"])[1:], pa.array([], type=pa.binary()), pa.array([b"c", b"\xff"])]
    assert (
        error_message(InputError, lambda: consume(pa.chunked_array(chunks)))
        == "document 3 is not valid UTF-8 at byte 0"
    )


@pytest.mark.parametrize("threads", [1, 2])
@every_consumer
def test_the_first_of_several_invalid_texts_is_named(threads: int, consume: Callable[..., object]) -> None:
    """Also when another thread reaches a later one first: 200 documents of 10 kB are many tasks."""
    texts = [b"word " * 2000] * 200
    for number in (61, 130, 199):
        texts[number] = texts[number] + b"\xff"
    found = error_message(InputError, lambda: consume(texts, threads=threads))
    assert found == "document 61 is not valid UTF-8 at byte 10000"


def test_a_string_array_that_is_not_utf8_is_refused() -> None:
    """Arrow does not validate it; the kernel does."""
    lie = pa.array([b"a", b"b\xff"]).view(pa.string())
    assert error_message(InputError, lambda: SHINGLER.shingle(lie)) == "document 1 is not valid UTF-8 at byte 1"


def test_byte_shingles_accept_any_bytes() -> None:
    sets = mw.Shingler("byte:2").shingle([b"\xff\xfe\xff", b"\x00\x00"])
    assert sets.sizes.tolist() == [2, 1]


def test_invalid_arrow_offsets_are_refused() -> None:
    """A hand-made array with descending offsets is an error, not a read outside the buffer."""
    offsets = pa.py_buffer(np.array([0, 5, 3], dtype=np.int32))
    lie = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdef")])
    assert "offsets" in error_message(InputError, lambda: SHINGLER.shingle(lie))


@pytest.mark.parametrize("threads", [0, -1, 1025, 1.5, True, "2"])
@every_consumer
def test_an_invalid_number_of_threads_is_refused(threads: object, consume: Callable[..., object]) -> None:
    with pytest.raises(ConfigError, match="threads must be a whole number from 1 to 1024, got") as caught:
        consume(["a"], threads=threads)
    assert repr(threads) in str(caught.value)


@pytest.mark.parametrize("text", [None, 3, ["a"]])
def test_spans_of_a_value_that_is_not_a_text_are_refused(text: Any) -> None:  # noqa: ANN401 - anything
    """The message has no document number, since there is only one text."""
    expected = "the text is null" if text is None else "the text must be str or bytes, got"
    assert error_message(InputError, lambda: SHINGLER.spans(text)).startswith(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [("a\ud800", "is not valid Unicode: surrogates not allowed at 1"), (b"a \xff", "is not valid UTF-8 at byte 2")],
)
def test_spans_of_invalid_text_are_refused(text: str | bytes, message: str) -> None:
    """The message contains the position in the text."""
    assert error_message(InputError, lambda: SHINGLER.spans(text)) == f"the text {message}"
