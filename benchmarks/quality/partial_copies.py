"""Copies of parts: what `passages`, `pairs` and its measures find among labelled answers and their originals.

``python -m benchmarks.quality.partial_copies`` runs them on the two corpora of plagiarism and writes a record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import minwise as mw
from benchmarks.quality.corpora import DATA, read_documents, read_rows
from benchmarks.quality.scoring import pair_figures
from benchmarks.record_files import command_line, write_json
from benchmarks.targets import align_rows

# Copied phrases, as the guide recommends; not chosen by the labels.
MIN_TOKENS = 8
THRESHOLD, SHINGLE = 0.2, "word:3"


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers and originals with a label for some pairs of them.

    Attributes:
        name: Name of the corpus, and which labels are true.
        texts: Text of each document by its id.
        labels: Whether an answer was copied from an original, by both ids.
    """

    name: str
    texts: dict[str, str]
    labels: dict[tuple[str, str], bool]

    @property
    def rows(self) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Answers and originals."""
        originals = {original for _, original in self.labels}
        rows = [{"id": name, "text": text} for name, text in self.texts.items()]
        return [row for row in rows if row["id"] not in originals], [row for row in rows if row["id"] in originals]


def by_passages(answers: Answers) -> set[tuple[str, str]]:
    """Return the answers that repeat a passage of an original."""
    copied, originals = answers.rows
    found = mw.passages(copied, against=originals, min_tokens=MIN_TOKENS)
    return set(zip(found["id"].to_pylist(), found["other_id"].to_pylist(), strict=True))


def by_pairs(answers: Answers) -> set[tuple[str, str]]:
    """Return the answers that are similar to an original."""
    return similar_pairs(answers, "jaccard")


def by_containment(answers: Answers) -> set[tuple[str, str]]:
    """Return the answers that lie in an original, or an original in them."""
    return similar_pairs(answers, "containment")


def similar_pairs(answers: Answers, measure: Literal["jaccard", "containment"]) -> set[tuple[str, str]]:
    """Return the pairs at or above the threshold, each in both directions."""
    rows = [row for side in answers.rows for row in side]
    found = mw.pairs(rows, shingle=SHINGLE, threshold=THRESHOLD, measure=measure)
    pairs = list(zip(found["left"].to_pylist(), found["right"].to_pylist(), strict=True))
    return {*pairs, *((right, left) for left, right in pairs)}


METHODS: dict[str, Callable[[Answers], set[tuple[str, str]]]] = {
    f"pairs at {THRESHOLD:g} of {SHINGLE}": by_pairs,
    f"containment at {THRESHOLD:g} of {SHINGLE}": by_containment,
    f"passages of {MIN_TOKENS} tokens": by_passages,
}


def load(data: Path) -> Iterator[Answers]:
    """Yield the corpora: pasted answers, all copied answers, and copied programs."""
    yield read_answers(data / "text" / "clough", "clough, pasted", {"cut"})
    yield read_answers(data / "text" / "clough", "clough, all copied", {"cut", "light", "heavy"})
    yield read_answers(data / "code" / "irplag", "irplag", {f"L{level}" for level in range(1, 7)})


def read_answers(folder: Path, name: str, true: set[str]) -> Answers:
    """Return a corpus whose labels are those in ``true`` and ``non``; others are ignored."""
    ids, texts = read_documents(folder)
    rows = ((answer, original, label) for answer, original, label in read_rows(folder / "pairs.tsv"))
    labels = {(answer, original): label in true for answer, original, label in rows if label in {*true, "non"}}
    return Answers(name, {name: texts[row] for name, row in ids.items()}, labels)


def measure(answers: Answers) -> dict[str, Any]:
    """Return recall, precision and F1 of each method."""
    true = sum(answers.labels.values())
    runs = []
    for method, find in METHODS.items():
        judged = [answers.labels[pair] for pair in find(answers) if pair in answers.labels]
        runs.append({"method": method, **pair_figures(len(judged), sum(judged), true)})
    return {"name": answers.name, "labelled": len(answers.labels), "true": true, "runs": runs}


def main() -> None:
    """Run the benchmark."""
    parser = command_line("quality.partial_copies", __doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="directory of text and code")
    settings = parser.parse_args()
    if not settings.data.is_dir():
        sys.exit(f"{settings.data}: the corpora are missing; set --data DIR")
    measured = [measure(answers) for answers in load(settings.data)]
    header = ["corpus", "true", "method", "recall", "precision", "F1"]
    print(align_rows([header, *map(list, figure_rows({"corpora": measured}))], text_columns=1))
    if settings.record:
        print(f"written to {write_json({'corpora': measured}, benchmark='partial-copies')}")


def figure_rows(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each corpus and method of a record."""
    for corpus in record["corpora"]:
        for run in corpus["runs"]:
            figures = (f"{run[name]:.3f}" for name in ("recall", "precision", "f1"))
            yield corpus["name"], f"{corpus['true']} of {corpus['labelled']}", run["method"], *figures


if __name__ == "__main__":
    main()
