"""Reference hash: integer and array versions agree, and the layout of bytes follows DESIGN."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minwise import reference as ref
from minwise.errors import InputError

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
words = st.integers(0, WORD)


def test_mix_gives_the_published_outputs_of_splitmix64() -> None:
    """Its first three outputs from state 0 are the mixes of G, 2G and 3G."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [ref.mix(i * GOLDEN) for i in (1, 2, 3)] == published


@given(values=st.lists(words), factor=words)
@example(values=[0, 1, WORD], factor=WORD)
def test_arrays_and_integers_agree(values: list[int], factor: int) -> None:
    array = np.array(values, dtype=np.uint64)
    high, low = ref.multiply_words(array, factor)
    assert [int(h) << 64 | int(w) for h, w in zip(high, low, strict=True)] == [value * factor for value in values]
    assert ref.fold_words(array, factor).tolist() == [ref.fold(value, factor) for value in values]
    assert ref.mix_words(array).tolist() == [ref.mix(value) for value in values]


@given(seed=words)
def test_keys_differ_by_domain_and_index(seed: int) -> None:
    keys = {ref.key(seed, domain, index) for domain in ref.Domain for index in range(8)}
    assert len(keys) == len(ref.Domain) * 8


def test_hash_bytes_by_hand() -> None:
    """Seventeen bytes are two blocks, the second one padded with fifteen zeros."""
    data = bytes(range(1, 18))
    k0, k1, k2 = (ref.key(5, 1, index) for index in range(3))
    first = ref.fold(0x0807060504030201 ^ k0, 0x100F0E0D0C0B0A09 ^ k1)
    second = ref.fold(0x11 ^ k0 ^ first, k1)
    assert ref.hash_bytes(data, 1, seed=5) == (second + 17 * k2) & WORD
    assert ref.hash_bytes(b"", 1, seed=5) == ref.fold(k0, k1)


def test_padding_does_not_hide_the_length() -> None:
    """Runs of zeros of different lengths hash differently."""
    assert len({ref.hash_bytes(bytes(length), 1) for length in range(50)}) == 50


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, bytes(8)),
        (-1, b"\xff" * 8),
        (2**63 - 1, b"\xff" * 7 + b"\x7f"),
        (2**63, bytes(7) + b"\x80" + bytes(8)),
        (-(2**63), bytes(7) + b"\x80"),
        (-(2**63) - 1, b"\xff" * 7 + b"\x7f" + b"\xff" * 8),
        (2**127, bytes(15) + b"\x80" + bytes(8)),
    ],
)
def test_integers_take_the_fewest_groups_of_eight_bytes(number: int, data: bytes) -> None:
    """On both sides of each limit where a group is added."""
    assert ref.hash_item(number, seed=3) == ref.mix(ref.hash_bytes(data, ref.Domain.INTEGER, seed=3))


def test_integers_strings_and_bytes_have_different_hashes() -> None:
    """NumPy integers equal plain ones."""
    assert len(ref.hash_items([3, "3", b"3", 3, np.int8(3)])) == 3


def test_items_of_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="got float"):
        ref.hash_items([1.5])  # type: ignore[list-item]
    with pytest.raises(InputError, match="lone surrogate at character 1"):
        ref.hash_item("a\ud800")
