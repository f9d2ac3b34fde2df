"""Compute pairs.tsv from docs.jsonl by comparing all texts in plain Python, without minwise, sketches or hashes.

python examples/newsroom/make_truth.py           prints the pairs
python examples/newsroom/make_truth.py --write   writes them to pairs.tsv
"""

import json
import sys
import unicodedata
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

FOLDER = Path(__file__).parent
SIZE = 3
THRESHOLD = 0.5
# Prefixes of Unicode names of scripts that are written without spaces; there every character is a word.
UNSPACED = ("CJK UNIFIED IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI")


def split_words(text: str) -> list[str]:
    """Return the lower-cased words of a text: runs of letters and digits, or single characters in unspaced scripts."""
    words: list[str] = []
    open_word = False
    for character in unicodedata.normalize("NFKC", text).lower():
        kind = unicodedata.category(character)[0]
        if kind == "M" and words and open_word:
            words[-1] += character
        elif kind not in "LN":
            open_word = False
        elif unicodedata.name(character, "").startswith(UNSPACED):
            words.append(character)
            open_word = True
        elif open_word and not unicodedata.name(words[-1][0], "").startswith(UNSPACED):
            words[-1] += character
        else:
            words.append(character)
            open_word = True
    return words


def make_shingles(text: str) -> set[tuple[str, ...]]:
    """Return every run of three words; a shorter text is one run of all its words, a text without words has none."""
    words = split_words(text)
    if len(words) < SIZE:
        return {tuple(words)} if words else set()
    return {tuple(words[start : start + SIZE]) for start in range(len(words) - SIZE + 1)}


def similarity(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> float:
    """Return the Jaccard similarity; 0 if both sets are empty."""
    return len(left & right) / len(left | right) if left | right else 0.0


def true_pairs(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs at or above the threshold, in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    shingles = [(row["id"], make_shingles(row["text"])) for row in rows]
    for (left, left_set), (right, right_set) in combinations(shingles, 2):
        value = similarity(left_set, right_set)
        if value >= THRESHOLD:
            yield left, right, value


def make_table() -> str:
    """Return the contents of pairs.tsv."""
    rows = [f"{left}\t{right}\t{value!r}\n" for left, right, value in true_pairs(FOLDER / "docs.jsonl")]
    return "left\tright\tsimilarity\n" + "".join(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        (FOLDER / "pairs.tsv").write_text(make_table(), encoding="utf-8")
    else:
        sys.stdout.write(make_table())
