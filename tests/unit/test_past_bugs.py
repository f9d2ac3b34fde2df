"""Bugs that were there once, each under the name of what went wrong."""

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support.expect import complaint

import minwise as mw

WORD = mw.Shingler("word:1")


def spans_say(text: str) -> list[int]:
    """The elements of a text by the general path, which shares no loop with the fast one."""
    found: list[int] = np.unique(WORD.spans(text).hashes).tolist()
    return found


@pytest.mark.parametrize(
    "text",
    ["1·2·3·" * 3000, ("a " * 25 + "– ") * 1000, "½ " * 5000, "a\u00a0" * 9000],
    ids=["middle dots", "dashes", "halves", "no-break spaces"],
)
def test_one_letter_words_between_separators_overran_the_bounds(text: str) -> None:
    """Two boundaries for a byte of text, which was a panic."""
    assert WORD.shingle([text])[0].tolist() == spans_say(text)


@pytest.mark.parametrize("length", range(8185, 8200))
def test_an_accent_behind_the_flush_was_not_composed(length: int) -> None:
    """The letter had been hashed when its accent came."""
    lead = ("ab " * 3000)[: length - 1]
    composed, apart = WORD.shingle([f"{lead}é tail"])[0], WORD.shingle([f"{lead}e\u0301 tail"])[0]
    np.testing.assert_array_equal(apart, composed)


@pytest.mark.parametrize("syllable", ["มี", "កិ", "မိ", "漢\u0948"])
def test_vowel_signs_were_lost_at_the_flush(syllable: str) -> None:
    """Signs of combining class 0 start a segment but belong to the character before them."""
    text = "x" + syllable * 6000
    assert WORD.shingle([text])[0].tolist() == spans_say(text)


def test_a_megabyte_of_accents_took_gigabytes() -> None:
    """Room is made as the text comes, not for the worst case of all of it; and the accents are one word's."""
    text = "e" + "\u0301" * 500_000
    assert len(WORD.shingle([text])[0]) == 1


def test_tiny_chunks_of_a_stream_were_sketched_one_by_one() -> None:
    """A line each, and still the signature of the whole."""
    lines = [f"line {number} of a long file\n" for number in range(5000)]
    scheme = mw.FastSketch(slots=64)
    whole = scheme.sketch_texts(["".join(lines)])
    np.testing.assert_array_equal(scheme.sketch_stream(lines).slots, whole.slots)


def test_a_file_that_does_not_block_ended_early() -> None:
    """None is not the end."""

    class Unready(io.RawIOBase):
        def read(self, size: int = -1, /) -> None:
            return None

    assert "must wait" in complaint(mw.InputError, lambda: mw.FastSketch().sketch_stream(Unready()))


def test_sets_that_do_not_ascend_gave_wrong_similarities() -> None:
    """Sorted order is what every comparison relies on; across sets there is none."""
    offsets, hashes = np.array([0, 3, 6, 6, 10]), np.array([3, 2, 1, 1, 2, 3, 9, 4, 9, 4], dtype=np.uint64)
    sets = mw.ShingleSets(offsets, hashes)
    assert [one.tolist() for one in sets] == [[1, 2, 3], [1, 2, 3], [], [4, 9]]
    assert mw.similarities(sets, [(0, 1), (0, 2), (1, 3)]).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("value", [10**5000, np.arange(400), "x\ny" * 100], ids=["digits", "array", "lines"])
def test_messages_repeated_whole_values(value: Any) -> None:  # noqa: ANN401 - anything
    """One line, whatever was given."""
    assert len(complaint(mw.ConfigError, lambda: mw.FastSketch(slots=value))) < 200


def test_a_confidence_next_to_one_was_a_foreign_error() -> None:
    """The normal quantile of 1 is infinite."""
    complaint(mw.ConfigError, lambda: mw.slots_for(0.05, float(np.nextafter(1, 0))))


def test_estimates_from_sizes_left_the_possible() -> None:
    """Ten elements can not share fifty-four."""
    signatures = mw.FastSketch(slots=64).sketch(mw.ShingleSets.from_sets([range(10), range(1000)]))
    shared, apart = signatures.intersection(0, 1), signatures.hamming(0, 1)
    assert 0 <= shared.low <= shared.value <= shared.high <= 10
    assert 990 <= apart.low <= apart.value <= apart.high <= 1010


def test_repeated_words_with_many_slots_took_all_rounds() -> None:
    """Seconds then; the signature is that of one word."""
    scheme = mw.FastSketch(slots=4096)
    many, one = scheme.sketch_texts(["word " * 16_000, "word"], WORD).slots
    np.testing.assert_array_equal(many, one)


def test_an_interrupt_meets_no_lookup_of_what_numpy_offers() -> None:
    """The kernel looked it up at its first call, in Python, where a Ctrl-C became a panic; now importing it does."""
    program = """if True:
        import minwise, numpy

        def interrupt(version):
            raise KeyboardInterrupt

        numpy.lib.NumpyVersion = interrupt
        print(minwise.Shingler("word:1").shingle(["one two"]).sizes.tolist())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[2]\n", "")


def test_an_interrupt_while_numpy_is_imported_is_one() -> None:
    """It was a panic, since the kernel left the import to what looks up what NumPy offers."""
    program = """if True:
        import sys

        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy.lib":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupting())
        try:
            import minwise
        except KeyboardInterrupt:
            print("heard")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("heard\n", "")
