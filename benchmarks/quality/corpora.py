r"""Corpora: real data with its truth, cut into the sets that every tool is given.

Documents become sets here, once: lower-cased ``\w+`` words, some in a row. Each element is then written as one
word of letters, so that a tool that cuts text itself cuts out the same sets, and one that drops digits or
punctuation drops nothing.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.quality.joining import Pair, join
from benchmarks.speed.runners.shingling import word_shingles

DATA = Path(__file__).parents[3] / "shared" / "data"
# Sixteen letters for the sixteen digits of a hash; none of them is a vowel, so no word, month or day comes out.
LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Sets and what is true of them.

    Attributes:
        name: Shown in the table.
        sets: The elements of each document, sorted.
        shingle: How they were cut.
        threshold: Similarity from which on a tool should report a pair.
        kind: ``labels`` or ``join``: where the truth is from.
        truth: The pairs that should be found.
        judged: The pairs that are looked at; None for all.
        clusters: The number of the cluster of each document, where clusters are given.
    """

    name: str
    sets: list[list[str]]
    shingle: str
    threshold: float
    kind: str
    truth: set[Pair]
    judged: Container[Pair] | None = None
    clusters: list[int] | None = None

    @property
    def texts(self) -> list[str]:
        """The sets as texts whose words are their elements."""
        return [" ".join(elements) for elements in self.sets]

    @property
    def sha256(self) -> str:
        """What tells this corpus from another."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Across:
    """The pairs of a document of a first list with one of a second.

    Attributes:
        first: How many documents the first list has.
    """

    first: int

    def __contains__(self, pair: object) -> bool:
        """Whether a pair has one of each."""
        return isinstance(pair, tuple) and pair[0] < self.first <= pair[1]


def load_corpora(data: Path = DATA) -> list[Corpus]:
    """Return all corpora whose files are there."""
    loaders: list[tuple[str, Callable[[Path], list[Corpus]]]] = [
        *((f"text/articles_{count}", articles) for count in (100, 1000, 2500)),
        ("text/clough", clough),
        ("text/spdx_licenses", licences),
        ("text/installguide_sample", install_guide),
        ("code/irplag", programs),
        ("sets/groceries.csv", groceries),
        ("sets/onlineretail_invoices.txt", invoices),
        ("er/pyjedai_D4", linkage),
        ("er/pyjedai_cora", citations),
    ]
    found = []
    for place, load in loaders:
        if (data / place).exists():
            found += load(data / place)
        else:
            print(f"{place}: not here, left out")
    return found


def articles(folder: Path) -> list[Corpus]:
    """News with planted copies; a pair that was not planted is false."""
    ids, texts = read_documents(folder)
    truth = {ordered(ids[left], ids[right]) for left, right, _ in read_rows(folder / "pairs.tsv")}
    sets = cut(texts, 3)
    return [Corpus(name=folder.name, sets=sets, shingle="word:3", threshold=0.5, kind="labels", truth=truth)]


def clough(folder: Path) -> list[Corpus]:
    """Students' answers and what they were written from: a cut is true, an answer written without it false."""
    return [labelled(folder, true={"cut"}, threshold=0.2)]


def programs(folder: Path) -> list[Corpus]:
    """Java programs and what they were copied from, at all levels of disguise."""
    return [labelled(folder, true={f"L{level}" for level in range(1, 7)}, threshold=0.2)]


def labelled(folder: Path, *, true: set[str], threshold: float) -> Corpus:
    """Return a corpus of which only some pairs have a label; between true and ``non`` nothing is counted."""
    ids, texts = read_documents(folder)
    labels = {ordered(ids[left], ids[right]): label for left, right, label in read_rows(folder / "pairs.tsv")}
    return Corpus(
        name=folder.name,
        sets=cut(texts, 3),
        shingle="word:3",
        threshold=threshold,
        kind="labels",
        truth={pair for pair, label in labels.items() if label in true},
        judged={pair for pair, label in labels.items() if label in true or label == "non"},
    )


def licences(folder: Path) -> list[Corpus]:
    """Licence texts, many of them versions of each other."""
    return joined("spdx_licenses", cut(read_documents(folder)[1], 3), "word:3", (0.5, 0.8))


def install_guide(folder: Path) -> list[Corpus]:
    """Chapters in five languages for three architectures; a cluster is a chapter in a language."""
    ids, texts = read_documents(folder)
    names = {ids[name]: cluster for name, cluster in read_rows(folder / "clusters.tsv")}
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(names.values()))}
    clusters = [numbers[names[row]] for row in range(len(texts))]
    return joined("installguide_sample", cut(texts, 5), "word:5", (0.5, 0.8), clusters)


def groceries(path: Path) -> list[Corpus]:
    """Baskets of a shop: small sets, many of them alike by chance."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return joined("groceries", [words(line.split(",")) for line in lines], "set", (0.8,))


def invoices(path: Path) -> list[Corpus]:
    """Invoices of a web shop."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sets = [words(line.partition("\t")[2].split()) for line in lines]
    return joined("onlineretail", sets, "set", (0.5, 0.8))


def linkage(folder: Path) -> list[Corpus]:
    """Papers of DBLP and of ACM as words of all their columns; only pairs across the two lists are judged."""
    left, right = (read_records(folder / f"{name}.csv", "%") for name in ("dblp", "acm"))
    truth = {(int(one), len(left) + int(other)) for one, other in read_rows(folder / "gt.csv", "%")[1:]}
    sets = cut([*left, *right], 1)
    return [
        Corpus(
            name="DBLP–ACM",
            sets=sets,
            shingle="word:1",
            threshold=0.4,
            kind="labels",
            truth=truth,
            judged=Across(len(left)),
        )
    ]


def citations(folder: Path) -> list[Corpus]:
    """Citations as people type them, as words of all their columns."""
    sets = cut(read_records(folder / "cora.csv", "|"), 1)
    truth = {ordered(int(one), int(other)) for one, other in read_rows(folder / "cora_gt.csv", "|")}
    clusters = components(len(sets), truth)
    return [
        Corpus(name="cora", sets=sets, shingle="word:1", threshold=0.4, kind="labels", truth=truth, clusters=clusters)
    ]


def joined(
    name: str, sets: list[list[str]], shingle: str, thresholds: tuple[float, ...], clusters: list[int] | None = None
) -> list[Corpus]:
    """Return a corpus per threshold; its truth is the exact join."""
    return [
        Corpus(
            name=name,
            sets=sets,
            shingle=shingle,
            threshold=threshold,
            kind="join",
            truth=join(sets, threshold),
            clusters=clusters,
        )
        for threshold in thresholds
    ]


def cut(texts: Iterable[str], length: int) -> list[list[str]]:
    """Return the set of each text: its windows of ``length`` lower-cased words."""
    return [words(word_shingles(text, length)) for text in texts]


def words(elements: Iterable[str]) -> list[str]:
    """Return each distinct element as a word of fifteen consonants, sorted."""
    return sorted({hashlib.sha256(one.encode()).hexdigest()[:15].translate(LETTERS) for one in elements})


def read_documents(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Return the number of each id, and the texts."""
    with (folder / "docs.jsonl").open(encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    return {one["id"]: number for number, one in enumerate(documents)}, [one["text"] for one in documents]


def read_rows(path: Path, separator: str = "\t") -> list[list[str]]:
    """Return the cells of every line."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=separator))


def read_records(path: Path, separator: str) -> list[str]:
    """Return a text for each record: all its columns but the first, which is its number."""
    return [" ".join(row[1:]) for row in read_rows(path, separator)[1:]]


def ordered(one: int, other: int) -> Pair:
    """Return a pair with the smaller number first."""
    return (one, other) if one < other else (other, one)


def components(count: int, pairs: Iterable[Pair]) -> list[int]:
    """Return for each of ``count`` documents the least number of what it is connected with."""
    parents = list(range(count))

    def root(one: int) -> int:
        while parents[one] != one:
            parents[one] = parents[parents[one]]
            one = parents[one]
        return one

    for left, right in pairs:
        low, high = sorted((root(left), root(right)))
        parents[high] = low
    return [root(one) for one in range(count)]


def pairs_within(clusters: Sequence[int]) -> set[Pair]:
    """Return every pair of documents of one cluster."""
    members: dict[int, list[int]] = defaultdict(list)
    for number, cluster in enumerate(clusters):
        members[cluster].append(number)
    return {pair for rows in members.values() for pair in combinations(rows, 2)}
