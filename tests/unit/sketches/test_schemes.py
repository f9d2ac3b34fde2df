"""Sketching schemes: settings, equal ways to a signature, streams, threads, forks and interrupts."""

import io
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.expect import error_message
from support.schemes import assert_same_slots

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.sketches import OnePermutation, similarities
from minwise.sketches.schemes import Scheme
from minwise.sketches.signatures import Bits

MAX_SLOTS = 16_384
TEXTS = [
    "",
    "one",
    "the harbour wakes before the town does, and the gulls know it",
    "Die Fähre legt um sechs Uhr ab; wer später kommt, wartet bis acht",
    "港の朝は早い。漁師たちは網を引く 🚢",
    "word after word after word " * 300,
]
SHINGLER = mw.Shingler("word:2")
SETS = SHINGLER.shingle(TEXTS)

SCHEMES: dict[str, Scheme] = {
    "minhash": mw.MinHash(slots=48),
    "minhash, 1 bit": mw.MinHash(slots=48).bbit(1),
    "fast": mw.FastSketch(slots=48),
    "fast, 4 bits": mw.FastSketch(slots=48).bbit(4),
    "fast, 32 bits": mw.FastSketch(slots=48).bbit(32),
    "oph": OnePermutation(bins=48),
    "oph, rotation": OnePermutation(bins=48, densify="rotation"),
    "oph, optimal, 8 bits": OnePermutation(bins=48, densify="optimal").bbit(8),
}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


SLOTS_RULE = f"slots must be a whole number from 1 to {MAX_SLOTS}, got "
BITS_RULE = "bits must be one of 1, 2, 4, 8, 16, 32"
SEED_RULE = "seed must be a whole number from 0 to 18446744073709551615, got "


@pytest.mark.parametrize("scheme", [mw.MinHash, mw.FastSketch], ids=lambda scheme: scheme.__name__)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"slots": slots}, SLOTS_RULE + repr(slots)) for slots in (0, -1, MAX_SLOTS + 1, 1.5, "64", True, None)),
        *(({"bits": bits}, f"{BITS_RULE}, None, got {bits!r}") for bits in (3, 0, -1, 64, "1", 8.0, True)),
        *(({"seed": seed}, SEED_RULE + repr(seed)) for seed in (-1, 2**64, 0.5, None)),
    ],
    ids=str,
)
def test_invalid_settings_are_refused_by_the_constructor(
    scheme: Callable[..., Scheme], settings: dict[str, Any], message: str
) -> None:
    assert error_message(ConfigError, lambda: scheme(**settings)) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 0}, f"bins must be a whole number from 1 to {MAX_SLOTS}, got 0"),
        ({"bins": MAX_SLOTS + 1}, f"bins must be a whole number from 1 to {MAX_SLOTS}, got {MAX_SLOTS + 1}"),
        ({"densify": "sideways"}, "densify must be one of rotation, optimal, None, got 'sideways'"),
        ({"densify": True}, "densify must be one of rotation, optimal, None, got True"),
        ({"bits": 1}, "bbit needs densify='rotation' or 'optimal': an empty bin has no bits, got densify=None"),
        ({"bits": 3, "densify": "optimal"}, f"{BITS_RULE}, None, got 3"),
        ({"seed": -1}, SEED_RULE + "-1"),
    ],
    ids=str,
)
def test_invalid_bins_are_refused(settings: dict[str, Any], message: str) -> None:
    """One permutation hashing calls its slots bins, and so does its message."""
    assert error_message(ConfigError, lambda: OnePermutation(**settings)) == message


def test_the_base_class_cannot_be_used() -> None:
    """The message names the schemes."""
    assert "MinHash, OnePermutation or FastSketch" in error_message(ConfigError, Scheme)


@pytest.mark.parametrize("bits", [3, 0, None, "2", 64])
def test_invalid_bits_are_refused(bits: Any) -> None:  # noqa: ANN401 - anything
    """By the scheme and by its signatures."""
    message = f"{BITS_RULE}, got {bits!r}"
    assert error_message(ConfigError, lambda: mw.MinHash().bbit(bits)) == message
    assert error_message(ConfigError, lambda: mw.MinHash(slots=8).sketch(SETS).bbit(bits)) == message


def test_bins_without_densification_cannot_be_packed() -> None:
    """By the scheme and by its signatures."""
    scheme = OnePermutation(bins=8)
    for call in (lambda: scheme.bbit(4), lambda: scheme.sketch(SETS).bbit(4)):
        assert error_message(ConfigError, call).startswith("bbit needs densify='rotation' or 'optimal'")


@pytest.mark.parametrize("bits", [8, 4, 16])
def test_packed_signatures_cannot_be_packed_again(bits: Bits) -> None:
    """The message contains both numbers."""
    signatures = mw.MinHash(slots=8).bbit(8).sketch(SETS)
    assert error_message(ConfigError, lambda: signatures.bbit(bits)) == (
        f"bits must be chosen once, got {bits} for signatures of 8 bits"
    )


@pytest.mark.parametrize("slots", [1, 2, 63, 64, 65, MAX_SLOTS])
@pytest.mark.parametrize("scheme", [mw.MinHash, mw.FastSketch], ids=lambda scheme: scheme.__name__)
def test_any_number_of_slots_up_to_the_maximum(slots: int, scheme: Callable[..., Scheme]) -> None:
    """Equal sets agree in every slot."""
    signatures = scheme(slots=slots).sketch(mw.ShingleSets.from_sets([range(100), range(99, -1, -1)]))
    assert signatures.slots.shape == (2, slots)
    assert signatures.estimate(0, 1).value == 1


@pytest.mark.parametrize("given", [[[1, 2]], "text", None, np.array([1])])
def test_sketch_refuses_other_types_than_sets(given: Any) -> None:  # noqa: ANN401 - anything
    found = error_message(InputError, lambda: mw.FastSketch().sketch(given))
    assert found == f"sets must be ShingleSets, got {type(given).__name__}; use ShingleSets.from_sets"


def test_sketch_texts_refuses_a_string_as_shingler() -> None:
    given: Any = "word:5"
    assert "shingler must be" in error_message(mw.MinwiseError, lambda: mw.FastSketch().sketch_texts(["a"], given))


@every_scheme
def test_the_fused_pass_equals_shingle_then_sketch(scheme: Scheme) -> None:
    """sketch_texts(texts) == sketch(shingle(texts)), with and without sizes."""
    expected = scheme.sketch(SETS)
    assert_same_slots(scheme.sketch_texts(TEXTS, SHINGLER), expected)
    with_sizes = scheme.sketch_texts(TEXTS, SHINGLER, sizes=True)
    assert_same_slots(with_sizes, expected)
    np.testing.assert_array_equal(with_sizes.sizes, SETS.sizes)
    assert scheme.sketch_texts(TEXTS, SHINGLER).sizes is None


@every_scheme
def test_texts_of_a_generator_equal_a_list(scheme: Scheme) -> None:
    """The buffer grows with the batches; 3 × 4096 + 1 documents are four batches."""
    texts = [f"document {number % 100} of a long row" for number in range(3 * 4096 + 1)]
    assert_same_slots(scheme.sketch_texts((text for text in texts), SHINGLER), scheme.sketch_texts(texts, SHINGLER))


@every_scheme
def test_the_result_does_not_depend_on_threads(scheme: Scheme) -> None:
    """On a batch of many tasks."""
    texts = [f"document {number} says " * (number % 40) for number in range(2000)]
    one = scheme.sketch_texts(texts, SHINGLER, threads=1)
    for threads in (2, 3):
        assert_same_slots(scheme.sketch_texts(texts, SHINGLER, threads=threads), one)
        assert_same_slots(scheme.sketch(SHINGLER.shingle(texts), threads=threads), one)


@every_scheme
def test_signatures_do_not_depend_on_order_and_repetition(scheme: Scheme) -> None:
    shingler = mw.Shingler("word:1")
    signatures = scheme.sketch_texts(["a b c", "c b a b c a a", "a b"], shingler)
    np.testing.assert_array_equal(signatures[0], signatures[1])
    assert not np.array_equal(signatures[0], signatures[2])


@every_scheme
def test_an_empty_document_has_similarity_0_to_all(scheme: Scheme) -> None:
    """Every slot is EMPTY, and the similarity to another empty document is 0 too."""
    signatures = scheme.sketch_texts(["", "one two", " "], SHINGLER)
    assert signatures.empty.tolist() == [True, False, True]
    for pair in ((0, 0), (0, 1), (1, 0), (0, 2)):
        estimate = signatures.estimate(*pair)
        assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)
    assert signatures.estimate(1, 1).value == 1
    if scheme.bits is None:
        assert np.all(signatures[0] == np.iinfo(signatures.slots.dtype).max)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("slots", [1, 7, 64])
def test_packed_slots_are_the_low_bits(bits: Bits, slots: int) -> None:
    """Slot s is in bits [s·b, (s+1)·b) of the row."""
    whole = mw.FastSketch(slots=slots).sketch(SETS)
    packed = whole.bbit(bits)
    for row, slots_of_row in zip(packed.slots, whole.slots, strict=True):
        number = int.from_bytes(row.tobytes(), "little")
        fields = [number >> (slot * bits) & (2**bits - 1) for slot in range(slots)]
        assert fields == [int(slot) & (2**bits - 1) for slot in slots_of_row]
        assert number >> (slots * bits) == 0
    assert_same_slots(mw.FastSketch(slots=slots).bbit(bits).sketch(SETS), packed)


STREAMING = {name: scheme for name, scheme in SCHEMES.items() if not scheme.settings.densify}
DOCUMENT = "Die Fähre, 港の朝! e\u0301 " * 40 + "ﬁn"


def pieces(data: Any, size: int) -> Iterator[Any]:  # noqa: ANN401 - str or bytes
    """Return consecutive pieces of text or bytes."""
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("scheme", STREAMING.values(), ids=STREAMING)
@pytest.mark.parametrize("spec", ["word:3", "char:5", "byte:4"])
def test_a_stream_equals_the_whole_document(scheme: Scheme, spec: str) -> None:
    """Open files of both kinds, and chunks split at any position, also inside a character."""
    shingler = mw.Shingler(spec)
    whole = scheme.sketch_texts([DOCUMENT], shingler)
    encoded = DOCUMENT.encode()
    streams: list[Any] = [io.StringIO(DOCUMENT), io.BytesIO(encoded), [DOCUMENT], [b"", encoded, b""]]
    for document in (*streams, *(pieces(encoded, size) for size in (1, 7, 100)), pieces(DOCUMENT, 3)):
        assert_same_slots(scheme.sketch_stream(document, shingler), whole)


@pytest.mark.parametrize("document", [[], [""], [b""], ["  ", "\n"], io.StringIO("")])
def test_an_empty_stream_is_an_empty_document(document: Any) -> None:  # noqa: ANN401 - any stream
    assert mw.FastSketch(slots=8).sketch_stream(document).empty.tolist() == [True]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("one text", "a stream must be an open file or chunks, got str; use sketch_texts"),
        (b"one text", "a stream must be an open file or chunks, got bytes; use sketch_texts"),
        (None, "a stream must be an open file or chunks, got NoneType"),
        (3, "a stream must be an open file or chunks, got int"),
        (["a", None], "the text is null"),
        (["a", 3], "the text must be str or bytes, got int"),
        ([b"good ", b"and \xff bad"], "the text is not valid UTF-8 at byte 9"),
        ([b"cut short \xe3\x81"], "the text is not valid UTF-8 at byte 10"),
        ([b"a \xe3", b"b"], "the text is not valid UTF-8 at byte 2"),
        (["a\ud800"], "the text is not valid Unicode: surrogates not allowed"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_invalid_streams_are_refused(document: Any, message: str) -> None:  # noqa: ANN401 - anything
    """The byte is counted over all chunks."""
    assert error_message(InputError, lambda: mw.FastSketch(slots=8).sketch_stream(document)).startswith(message)


def test_bags_and_densified_signatures_cannot_be_streamed() -> None:
    """The slotwise minimum does not merge them."""
    fast, bag = mw.FastSketch(slots=8), mw.Shingler(bag=True)
    assert error_message(ConfigError, lambda: fast.sketch_stream(["a"], bag)).startswith("bag must be False")
    dense = OnePermutation(bins=8, densify="optimal")
    assert error_message(ConfigError, lambda: dense.sketch_stream(["a"])).startswith("densify must be left out")


# Concurrency, forks and interrupts.

BUSY_TEXTS = [f"document {number} has its own words {number * 7919} " * 100 for number in range(300)]


def test_concurrent_calls_from_several_python_threads() -> None:
    """Eight callers share the pools and caches of the kernel."""
    expected = [scheme.sketch_texts(BUSY_TEXTS, SHINGLER, threads=1) for scheme in SCHEMES.values()]
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            pool.submit(scheme.sketch_texts, BUSY_TEXTS, SHINGLER, threads=threads)
            for threads in (2, 3)
            for scheme in SCHEMES.values()
        ]
        for job, signatures in zip(jobs, expected * 2, strict=True):
            assert_same_slots(job.result(timeout=60), signatures)


def ticks_during(call: Callable[[], object]) -> tuple[int, float]:
    """Return how often another thread, waking every millisecond, ran during a call, and the seconds of the call."""
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks[0] += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before, start = ticks[0], time.perf_counter()
        call()
        return ticks[0] - before, time.perf_counter() - start
    finally:
        stop.set()
        ticker.join()


def long_call(run: Callable[[int], object]) -> Callable[[], object]:
    """Return ``run`` with a size that keeps it busy for at least 0.2 s on this machine."""
    size = 1
    while True:
        start = time.perf_counter()
        run(size)
        if time.perf_counter() - start > 0.2:
            return lambda: run(size)
        size *= 2


def one_large_set(size: int) -> mw.ShingleSets:
    """Return a set of ``size`` times 10,000 elements."""
    elements = np.arange(10_000 * size, dtype=np.uint64)
    return mw.ShingleSets(np.array([0, len(elements)]), elements)


def many_pairs(size: int) -> NDArray[np.int64]:
    """Return ``size`` times 1,000 pairs of documents 0 and 1."""
    return np.tile(np.array([[0, 1]], dtype=np.int64), (1_000 * size, 1))


NUMBERS = " ".join(map(str, range(10_000)))
TWO_SETS = mw.ShingleSets.from_sets([range(1000), range(500, 1500)])
TWO = mw.MinHash(slots=16_384).sketch(TWO_SETS)

# The time of each grows with its size, and nearly all of it is spent in one kernel call.
LONG_CALLS: dict[str, Callable[[int], object]] = {
    "sketch": lambda size: mw.MinHash(slots=1024).sketch(one_large_set(size), threads=1),
    "sketch_texts": lambda size: mw.MinHash(slots=1024).sketch_texts([NUMBERS * size], threads=1),
    "shingle": lambda size: SHINGLER.shingle([NUMBERS * size], threads=1),
    "estimate_many": lambda size: TWO.estimate_many(many_pairs(size)),
    "estimate_many of bits": lambda size: TWO.bbit(8).estimate_many(many_pairs(size)),
    "similarities": lambda size: similarities(TWO_SETS, many_pairs(size)),
}


@pytest.mark.parametrize("kind", LONG_CALLS)
def test_the_kernel_releases_the_gil(kind: str) -> None:
    """A fifth of the milliseconds of the call would be enough turns; ten are required.

    A kernel that holds the GIL allows one turn before, one after, and a few in the Python code around it.
    """
    ticks, seconds = ticks_during(long_call(LONG_CALLS[kind]))
    assert ticks >= 10, f"{ticks} turns in {seconds:.2f} s"


def run_python(program: str, timeout_seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a program in a separate Python process."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)


@pytest.mark.posix
def test_a_forked_child_can_sketch() -> None:
    """It has none of the threads of its parent and must not wait for them; the parent keeps working."""
    done = run_python("""
        import multiprocessing, warnings
        import minwise as mw

        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads
        texts = [f"document {number} has its own words " * 400 for number in range(300)]

        def sketch(queue=None):
            slots = mw.FastSketch(slots=64).sketch_texts(texts, threads=2).slots.tobytes()
            if queue is not None:
                queue.put(slots)
            return slots

        expected = sketch()
        context = multiprocessing.get_context("fork")
        for _ in range(3):
            queue = context.Queue()
            child = context.Process(target=sketch, args=(queue,), daemon=True)
            child.start()
            assert queue.get(timeout=30) == expected
            child.join(30)
            assert child.exitcode == 0
            assert sketch() == expected
        print("done")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# Twenty interrupts, each sent while endless texts are sketched; one that is not raised within 2 s is lost.
INTERRUPTS = """
import os, signal, threading, time
import minwise as mw

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores the signal by default
state = {{"reading": False, "heard": 0}}

def texts():
    while True:
        state["reading"] = True
        yield "a few words and then a few more"

def wait(condition):
    end = time.monotonic() + 2
    while not condition():
        if time.monotonic() > end:
            os.write(1, b"lost after %d" % state["heard"])
            os._exit(0)
        time.sleep(0.001)

def interrupt():
    for number in range(20):
        wait(lambda: state["reading"])
        time.sleep(0.002)
        state["reading"] = False
        signal.raise_signal(signal.SIGINT)
        wait(lambda: state["heard"] > number)
        state["reading"] = False

mw.FastSketch(slots=64).sketch_texts(["the first call may load modules"])
threading.Thread(target=interrupt, daemon=True).start()
while state["heard"] < 20:
    try:
        mw.FastSketch(slots=64).{call}
    except KeyboardInterrupt:
        state["heard"] += 1
print("all heard")
"""


@pytest.mark.parametrize("call", ["sketch_stream(texts())", "sketch_texts(texts())"])
def test_no_interrupt_is_lost_between_calls_of_the_kernel(call: str) -> None:
    """Ctrl-C raises KeyboardInterrupt at any time."""
    done = run_python(INTERRUPTS.format(call=call))
    assert (done.returncode, done.stdout, done.stderr) == (0, "all heard\n", "")


def test_no_interrupt_is_lost_in_the_kernel() -> None:
    """It is raised when the kernel returns."""
    done = run_python("""
        import signal, threading
        import minwise as mw

        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
        try:
            mw.MinHash(slots=4096).sketch_texts([" ".join(map(str, range(150_000)))])
            while True:  # if the call was fast, the interrupt is still pending
                pass
        except KeyboardInterrupt:
            print("heard")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")
