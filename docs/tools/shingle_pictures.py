"""Pictures of the page on shingles and thresholds: how edits change the similarity of two texts."""

import random

import minwise as mw
from benchmarks.quality.svg_plot import Axis, Series, draw

__all__ = ["scattered_picture", "thresholds_table", "tolerated_share"]

SIZES = ("word:1", "word:3", "word:5", "word:8")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
# Long enough that a share of 1 % is several words; random words, so that no shingle occurs twice.
WORDS = 2000
SHARES = tuple(percent / 100 for percent in range(0, 21, 2))
SEED = 3


def scattered_picture() -> str:
    """Return the picture of the similarity by the share of words that are replaced, for several shingles."""
    series = [
        Series(name=size, points=[(share, _similarity(share, size)) for share in SHARES], style=style)
        for style, size in enumerate(SIZES)
    ]
    return draw(
        "Similarity after scattered edits",
        f"Measured on {WORDS:,} random words, of which a share is replaced at random positions.",
        series,
        across=Axis(label="share of words replaced", ticks=(0, 0.05, 0.1, 0.15, 0.2)),
        up=Axis(label="similarity", ticks=(0, 0.2, 0.4, 0.6, 0.8, 1)),
    )


def _similarity(share: float, shingle: str) -> float:
    chance = random.Random(SEED)
    before = [f"w{number}" for number in range(WORDS)]
    after = list(before)
    for position in chance.sample(range(WORDS), round(share * WORDS)):
        after[position] = f"new{position}"
    left, right = mw.Shingler(shingle).shingle([" ".join(before), " ".join(after)])
    return mw.jaccard(left, right)


def tolerated_share(threshold: float, words: int) -> float:
    """Return the share of scattered replacements at which the expected similarity falls to a threshold.

    A shingle of k words survives with probability (1 − p)^k = q, and the similarity is then q / (2 − q).

    >>> round(tolerated_share(0.8, 5), 3)
    0.023
    """
    return 1 - float((2 * threshold / (1 + threshold)) ** (1 / words))


def thresholds_table() -> str:
    """Return the rows of the table of tolerated shares: a row per threshold, a column per shingle."""
    rows = [f"| threshold | {' | '.join(f'`{size}`' for size in SIZES)} |", "|---|" + "---:|" * len(SIZES)]
    for threshold in THRESHOLDS:
        shares = [tolerated_share(threshold, int(size.partition(":")[2])) for size in SIZES]
        rows.append(f"| {threshold} | {' | '.join(f'{share:.1%}'.replace('%', ' %') for share in shares)} |")
    return "\n".join(rows)
