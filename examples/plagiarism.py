"""Rank answers by the share of them that is contained in an original.

    python examples/plagiarism.py FOLDER [--shingle word:3] [--top 12]

FOLDER contains docs.jsonl (id, text), in which the ids of originals start with ``orig``, and optionally pairs.tsv
(answer, original, label) with the true label of each answer.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

import minwise as mw
from minwise import sketches

# Instructions given to the students, from most to least copied.
LABELS = ("cut", "light", "heavy", "non")


@dataclass(frozen=True, kw_only=True)
class Match:
    """An answer and the original that contains most of it."""

    answer: str
    original: str
    containment: float
    similarity: float
    label: str


def rank_answers(folder: Path, shingle: str = "word:3") -> list[Match]:
    """Return every answer with its original, the most copied first."""
    with (folder / "docs.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    ids: list[str] = [row["id"] for row in rows]
    sets = mw.Shingler(shingle).shingle([row["text"] for row in rows])
    originals = [position for position, name in enumerate(ids) if name.startswith("orig")]
    labels = read_labels(folder / "pairs.tsv")
    matches = []
    for position, name in enumerate(ids):
        if position in originals:
            continue
        best = max(originals, key=lambda original: sketches.containment(sets[position], sets[original]))
        match = Match(
            answer=name,
            original=ids[best],
            containment=sketches.containment(sets[position], sets[best]),
            similarity=mw.jaccard(sets[position], sets[best]),
            label=labels.get(name, ""),
        )
        matches.append(match)
    return sorted(matches, key=lambda match: -match.containment)


def read_labels(path: Path) -> dict[str, str]:
    """Return the label of each answer; empty if there is no file."""
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {answer: label for answer, _, label in rows}


def mean_per_label(matches: Sequence[Match]) -> dict[str, tuple[int, float, float]]:
    """Return the count, mean containment and mean similarity of each label."""
    groups = {label: [match for match in matches if match.label == label] for label in LABELS}
    return {
        label: (len(group), mean(match.containment for match in group), mean(match.similarity for match in group))
        for label, group in groups.items()
        if group
    }


def rank_quality(scores: Sequence[float], labels: Sequence[str]) -> float:
    """Return how often the more copied of two answers with different labels scores higher; ties count half."""
    right = total = 0.0
    for (score, label), (other, other_label) in combinations(zip(scores, labels, strict=True), 2):
        if label != other_label:
            copied = score if LABELS.index(label) < LABELS.index(other_label) else other
            right += 1.0 if copied > min(score, other) else 0.5 if score == other else 0.0
            total += 1
    return right / total if total else 0.0


def show_ranking(console: Console, matches: Sequence[Match], top: int) -> None:
    """Print the top of the ranking."""
    table = Table("answer", "original", box=None, pad_edge=False)
    for name in ("containment", "similarity"):
        table.add_column(name, justify="right")
    table.add_column("label")
    for match in matches[:top]:
        numbers = (f"{match.containment:.3f}", f"{match.similarity:.3f}")
        table.add_row(match.answer, match.original, *numbers, match.label)
    console.print(table)
    if len(matches) > top:
        console.print(f"… and {len(matches) - top} more")


def show_labels(console: Console, matches: Sequence[Match]) -> None:
    """Print the means per label and the rank quality of both measures."""
    table = Table("label", box=None, pad_edge=False)
    for name in ("answers", "containment", "similarity"):
        table.add_column(name, justify="right")
    for label, (count, contained, similar) in mean_per_label(matches).items():
        table.add_row(label, str(count), f"{contained:.3f}", f"{similar:.3f}")
    labels = [match.label for match in matches]
    contained = rank_quality([match.containment for match in matches], labels)
    similar = rank_quality([match.similarity for match in matches], labels)
    table.add_row("ranked right", "", f"{contained:.3f}", f"{similar:.3f}")
    console.print()
    console.print(table)


def main() -> None:
    """Rank the answers and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shingle", default="word:3")
    parser.add_argument("--top", type=int, default=12, help="number of answers to list")
    args = parser.parse_args()
    matches = rank_answers(args.folder, args.shingle)
    console = Console(highlight=False)
    show_ranking(console, matches, args.top)
    if all(match.label for match in matches):
        show_labels(console, matches)


if __name__ == "__main__":
    main()
