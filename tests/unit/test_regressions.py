"""Regression tests of texts, sets and sketches; each fails without its fix."""

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.sketches import similarities, slots_for

WORD = mw.Shingler("word:1")


def elements_by_spans(text: str) -> list[int]:
    """Return the elements of a text by the general path, which shares no loop with the fast one."""
    found: list[int] = np.unique(WORD.spans(text).hashes).tolist()
    return found


@pytest.mark.parametrize(
    "text",
    ["1·2·3·" * 3000, ("a " * 25 + "– ") * 1000, "½ " * 5000, "a\u00a0" * 9000],
    ids=["middle dots", "dashes", "halves", "no-break spaces"],
)
def test_one_letter_words_between_separators_stay_within_bounds(text: str) -> None:
    """They have two boundaries per byte of text, which caused a panic."""
    assert WORD.shingle([text])[0].tolist() == elements_by_spans(text)


@pytest.mark.parametrize("length", range(8185, 8200))
def test_an_accent_after_a_buffer_flush_is_composed(length: int) -> None:
    """The letter had been hashed before its accent was read."""
    lead = ("ab " * 3000)[: length - 1]
    composed, apart = WORD.shingle([f"{lead}é tail"])[0], WORD.shingle([f"{lead}e\u0301 tail"])[0]
    np.testing.assert_array_equal(apart, composed)


@pytest.mark.parametrize("syllable", ["มี", "កិ", "မိ", "漢\u0948"])
def test_vowel_signs_at_a_buffer_flush_are_kept(syllable: str) -> None:
    """Signs of combining class 0 start a segment but belong to the character before them."""
    text = "x" + syllable * 6000
    assert WORD.shingle([text])[0].tolist() == elements_by_spans(text)


def test_a_megabyte_of_accents_takes_little_memory() -> None:
    """Buffers grow with the text, not with its worst case; the accents belong to one word."""
    text = "e" + "\u0301" * 500_000
    assert len(WORD.shingle([text])[0]) == 1


def test_tiny_chunks_of_a_stream_give_the_signature_of_the_whole() -> None:
    lines = [f"line {number} of a long file\n" for number in range(5000)]
    scheme = mw.FastSketch(slots=64)
    whole = scheme.sketch_texts(["".join(lines)])
    np.testing.assert_array_equal(scheme.sketch_stream(lines).slots, whole.slots)


def test_a_non_blocking_file_without_data_is_an_error() -> None:
    """A read that returns None is not the end of the file."""

    class Unready(io.RawIOBase):
        def read(self, size: int = -1, /) -> None:
            return None

    assert "must wait" in error_message(InputError, lambda: mw.FastSketch().sketch_stream(Unready()))


def test_unsorted_sets_are_sorted() -> None:
    """Every comparison relies on sorted order; sets have no order among each other."""
    offsets, hashes = np.array([0, 3, 6, 6, 10]), np.array([3, 2, 1, 1, 2, 3, 9, 4, 9, 4], dtype=np.uint64)
    sets = mw.ShingleSets(offsets, hashes)
    assert [elements.tolist() for elements in sets] == [[1, 2, 3], [1, 2, 3], [], [4, 9]]
    assert similarities(sets, [(0, 1), (0, 2), (1, 3)]).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("value", [10**5000, np.arange(400), "x\ny" * 100], ids=["digits", "array", "lines"])
def test_messages_shorten_long_values(value: Any) -> None:  # noqa: ANN401 - anything
    assert len(error_message(ConfigError, lambda: mw.FastSketch(slots=value))) < 200


def test_a_confidence_next_to_one_is_a_config_error() -> None:
    """The normal quantile of 1 is infinite."""
    error_message(ConfigError, lambda: slots_for(0.05, float(np.nextafter(1, 0))))


def test_estimates_from_sizes_stay_within_their_limits() -> None:
    """Ten elements cannot share fifty-four."""
    signatures = mw.FastSketch(slots=64).sketch(mw.ShingleSets.from_sets([range(10), range(1000)]))
    shared, apart = signatures.intersection(0, 1), signatures.hamming(0, 1)
    assert 0 <= shared.low <= shared.value <= shared.high <= 10
    assert 990 <= apart.low <= apart.value <= apart.high <= 1010


def test_repeated_words_with_many_slots_have_the_signature_of_one_word() -> None:
    """It took all rounds, which are seconds."""
    scheme = mw.FastSketch(slots=4096)
    repeated, single = scheme.sketch_texts(["word " * 16_000, "word"], WORD).slots
    np.testing.assert_array_equal(repeated, single)


def test_an_interrupt_does_not_hit_the_numpy_api_lookup() -> None:
    """The kernel looked it up in its first call, in Python, where a Ctrl-C became a panic; now the import does."""
    program = """if True:
        import minwise.text, numpy

        def interrupt(version):
            raise KeyboardInterrupt

        numpy.lib.NumpyVersion = interrupt
        print(minwise.Shingler("word:1").shingle(["one two"]).sizes.tolist())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[2]\n", "")


def test_an_interrupt_during_the_numpy_import_is_a_keyboard_interrupt() -> None:
    """It was a panic, since the kernel imported NumPy in its lookup of the NumPy API."""
    program = """if True:
        import sys

        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy.lib":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupting())
        try:
            import minwise.text
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
