"""Entry point of ``python -m benchmarks.quality.figures``: measure the schemes on synthetic sets and draw plots.

The sets contain integers and have a known similarity; the elements of different pairs are distinct, so pairs are
independent. The error is the root mean square difference between estimate and similarity over `PAIRS` pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import minwise as mw
from benchmarks.quality.svg_plot import Axis, Series, draw
from benchmarks.record_files import write_json
from minwise.sketches import OnePermutation, Scheme
from minwise.sketches.signatures import Bits

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
SEED = 7
PAIRS = 2000
SIMILARITY = 0.5
SLOTS = (16, 32, 64, 128, 256, 512)
# Far below the number of slots, about as many, and far above.
SIZES = (8, 16, 32, 64, 128, 256, 512, 1000, 2000, 5000, 10_000)
SIZE_TICKS = (8, 32, 128, 512, 2000, 10_000)
SLOTS_FOR_SIZES = 256
SIZE_FOR_SLOTS = 1000
BIT_SLOTS = (32, 64, 128, 256, 512)
SIMILARITIES = tuple(round(0.4 + 0.05 * step, 2) for step in range(12))
SCHEMES = {"fast": "FastSketch", "oph": "one permutation", "minhash": "k functions"}
STYLES = {"fast": 0, "oph": 1, "minhash": 2}
Both = NDArray[np.int64]


def main() -> None:
    """Measure, draw the plots and write the record."""
    numbers: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, measure in FIGURES.items():
        figure = measure()
        (ASSETS / f"{name}.svg").write_text(figure.drawn, encoding="utf-8")
        numbers[name] = {line.name: [(round(x, 4), round(y, 5)) for x, y in line.points] for line in figure.series}
        print(name, numbers[name])
    settings = {"pairs": PAIRS, "seed": SEED, "similarity": SIMILARITY, "minwise": mw.__version__}
    settings |= {"slots_for_sizes": SLOTS_FOR_SIZES, "size_for_slots": SIZE_FOR_SLOTS}
    print(f"written to {write_json({'settings': settings, 'figures': numbers}, benchmark='figures')}")


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG plot and its series."""

    drawn: str
    series: list[Series]


def make_sets(size: int, similarity: float, pairs: int = PAIRS) -> tuple[mw.ShingleSets, float]:
    """Return consecutive pairs of sets of ``size`` elements, and the similarity of each pair."""
    random = np.random.default_rng([SEED, size, round(1000 * similarity)])
    common = round(2 * size * similarity / (1 + similarity))
    union = 2 * size - common

    def members() -> Iterator[list[int]]:
        for _ in range(pairs):
            elements = random.integers(0, 2**62, union).tolist()
            yield elements[:size]
            yield elements[union - size :]

    return mw.ShingleSets.from_sets(members()), common / union


def scheme_of(name: str, slots: int, bits: Bits | None = None) -> Scheme:
    """Return the scheme with a name."""
    if name == "oph":
        return OnePermutation(bins=slots, seed=SEED)
    if name == "minhash":
        return mw.MinHash(slots=slots, seed=SEED, bits=bits)
    return mw.FastSketch(slots=slots, seed=SEED, bits=bits)


def error(scheme: Scheme, sets: mw.ShingleSets, similarity: float) -> float:
    """Return the root mean square error of the estimates."""
    both: Both = np.arange(len(sets), dtype=np.int64).reshape(-1, 2)
    values = scheme.sketch(sets, threads=1).estimate_many(both).value
    return float(np.sqrt(np.mean((values - similarity) ** 2)))


def error_by_slots() -> Figure:
    """Return the error by number of slots, for sets of `SIZE_FOR_SLOTS` elements."""
    sets, similarity = make_sets(SIZE_FOR_SLOTS, SIMILARITY)
    series = [
        Series(
            name=words,
            style=STYLES[name],
            points=[(slots, error(scheme_of(name, slots), sets, similarity)) for slots in SLOTS],
        )
        for name, words in SCHEMES.items()
    ]
    theory = [(slots, (similarity * (1 - similarity) / slots) ** 0.5) for slots in SLOTS]
    series.append(Series(name="√(J(1 − J)/slots)", style=3, points=theory, marks=False))
    picture = draw(
        f"Error against slots, sets of {SIZE_FOR_SLOTS:,}",
        f"Sets of {SIZE_FOR_SLOTS:,} elements with a similarity of {SIMILARITY}. "
        "FastSketch and one permutation hashing lie on or below k functions.",
        series,
        across=Axis(label="slots", ticks=tuple(map(float, SLOTS)), logarithmic=True),
        up=Axis(label="root mean squared error", ticks=(0.01, 0.02, 0.05, 0.1, 0.2), logarithmic=True),
    )
    return Figure(picture, series)


def error_by_size() -> Figure:
    """Return the error by size of the sets, at `SLOTS_FOR_SIZES` slots."""
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in (*SCHEMES, "theory")}
    for size in SIZES:
        sets, exact = make_sets(size, SIMILARITY)
        for name in SCHEMES:
            points[name].append((size, error(scheme_of(name, SLOTS_FOR_SIZES), sets, exact)))
        points["theory"].append((size, (exact * (1 - exact) / SLOTS_FOR_SIZES) ** 0.5))
    series = [Series(name=words, style=STYLES[name], points=points[name]) for name, words in SCHEMES.items()]
    series.append(Series(name="√(J(1 − J)/slots)", style=3, points=points["theory"], marks=False))
    picture = draw(
        f"Error against set size, {SLOTS_FOR_SIZES} slots",
        "Small sets are estimated better by FastSketch and one permutation hashing; far above the slots all are equal.",
        series,
        across=Axis(label="elements of a set", ticks=SIZE_TICKS, logarithmic=True),
        up=Axis(label="root mean squared error", ticks=(0.0, 0.01, 0.02, 0.03, 0.04)),
    )
    return Figure(picture, series)


def recall_by_similarity() -> Figure:
    """Return the share of pairs that share a band and the S-curve of the default plan."""
    plan = mw.plan(threshold=0.8, recall=0.99)
    series = []
    for name in ("fast", "minhash"):
        points = []
        for similarity in SIMILARITIES:
            sets, exact = make_sets(400, similarity)
            slots = scheme_of(name, plan.bands * plan.rows).sketch(sets, threads=1).slots
            same = (slots[::2] == slots[1::2]).reshape(-1, plan.bands, plan.rows)
            points.append((exact, float(same.all(axis=2).any(axis=1).mean())))
        series.append(Series(name=SCHEMES[name], style=STYLES[name], points=points, line=False))
    similarities = np.linspace(0.4, 1, 121).tolist()
    curve = [(similarity, float(plan.probability(similarity))) for similarity in similarities]
    series.append(Series(name="S-curve", style=3, points=curve, marks=False))
    picture = draw(
        f"Recall against similarity, {plan.layout}",
        "The measured share of pairs that share a band lies on the S-curve.",
        series,
        across=Axis(label="similarity of two documents", ticks=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        up=Axis(label="share of pairs found", ticks=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    )
    return Figure(picture, series)


def error_by_bits() -> Figure:
    """Return the error by bytes of a signature, a line for each number of bits."""
    sets, similarity = make_sets(SIZE_FOR_SLOTS, SIMILARITY)
    styles: dict[Bits | None, int] = {1: 0, 4: 1, 16: 2, None: 3}
    series = []
    for bits, style in styles.items():
        points = []
        for slots in BIT_SLOTS:
            size = slots * (bits or 64) / 8
            points.append((size, error(scheme_of("fast", slots, bits), sets, similarity)))
        name = f"{bits} bit{'s' if bits != 1 else ''} a slot" if bits else "64 bits, all"
        series.append(Series(name=name, style=style, points=points))
    picture = draw(
        "Error against bytes of a signature, FastSketch",
        f"FastSketch on sets of {SIZE_FOR_SLOTS:,} with a similarity of {SIMILARITY}; fewer bits, more slots.",
        series,
        across=Axis(label="bytes", ticks=(4, 16, 64, 256, 1024, 4096), logarithmic=True),
        up=Axis(label="root mean squared error", ticks=(0.01, 0.02, 0.05, 0.1, 0.2), logarithmic=True),
    )
    return Figure(picture, series)


FIGURES = {
    "error-by-slots": error_by_slots,
    "error-by-size": error_by_size,
    "recall-by-similarity": recall_by_similarity,
    "error-by-bits": error_by_bits,
}


if __name__ == "__main__":
    main()
