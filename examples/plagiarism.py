"""Ranks answers by how much of them stands in an original.

    python examples/plagiarism.py FOLDER [--shingle word:3] [--most 12]

FOLDER holds docs.jsonl (id, text), in which the ids of originals start with ``orig``, and perhaps pairs.tsv (answer,
original, label), which tells how each answer was really made.
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

# What students were told to do, from most to least copied.
LABELS = ("cut", "light", "heavy", "non")


@dataclass(frozen=True, kw_only=True)
class Match:
    """An answer and the original that holds most of it."""

    answer: str
    original: str
    containment: float
    similarity: float
    label: str


def rank_answers(folder: Path, shingle: str = "word:3") -> list[Match]:
    """Every answer with its original, the most copied first."""
    with (folder / "docs.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    ids: list[str] = [row["id"] for row in rows]
    sets = mw.Shingler(shingle).shingle([row["text"] for row in rows])
    originals = [place for place, name in enumerate(ids) if name.startswith("orig")]
    labels = read_labels(folder / "pairs.tsv")
    matches = []
    for place, name in enumerate(ids):
        if place in originals:
            continue
        best = max(originals, key=lambda original: mw.containment(sets[place], sets[original]))
        match = Match(
            answer=name,
            original=ids[best],
            containment=mw.containment(sets[place], sets[best]),
            similarity=mw.jaccard(sets[place], sets[best]),
            label=labels.get(name, ""),
        )
        matches.append(match)
    return sorted(matches, key=lambda match: -match.containment)


def read_labels(path: Path) -> dict[str, str]:
    """How each answer was made, if somebody knows."""
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {answer: label for answer, _, label in rows}


def mean_per_label(matches: Sequence[Match]) -> dict[str, tuple[int, float, float]]:
    """How many answers, mean containment and mean similarity of each label."""
    groups = {label: [match for match in matches if match.label == label] for label in LABELS}
    return {
        label: (len(group), mean(one.containment for one in group), mean(one.similarity for one in group))
        for label, group in groups.items()
        if group
    }


def rank_quality(scores: Sequence[float], labels: Sequence[str]) -> float:
    """Of two answers with different labels, how often the more copied one scores higher; ties count half."""
    right = total = 0.0
    for (one, label), (other, other_label) in combinations(zip(scores, labels, strict=True), 2):
        if label != other_label:
            first = one if LABELS.index(label) < LABELS.index(other_label) else other
            right += 1.0 if first > min(one, other) else 0.5 if one == other else 0.0
            total += 1
    return right / total if total else 0.0


def show_ranking(console: Console, matches: Sequence[Match], most: int) -> None:
    """The top of the ranking."""
    table = Table("answer", "original", box=None, pad_edge=False)
    for name in ("containment", "similarity"):
        table.add_column(name, justify="right")
    table.add_column("label")
    for match in matches[:most]:
        numbers = (f"{match.containment:.3f}", f"{match.similarity:.3f}")
        table.add_row(match.answer, match.original, *numbers, match.label)
    console.print(table)
    if len(matches) > most:
        console.print(f"… and {len(matches) - most} more")


def show_labels(console: Console, matches: Sequence[Match]) -> None:
    """Means per label, and how well either measure ranks."""
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
    """Ranks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shingle", default="word:3")
    parser.add_argument("--most", type=int, default=12, help="how many answers to list")
    given = parser.parse_args()
    matches = rank_answers(given.folder, given.shingle)
    console = Console(highlight=False)
    show_ranking(console, matches, given.most)
    if all(match.label for match in matches):
        show_labels(console, matches)


if __name__ == "__main__":
    main()
