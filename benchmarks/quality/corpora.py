r"""Corpora: real data with its truth, cut into the sets that every tool is given.

Documents become sets here, once: lower-cased ``\w+`` words, some in a row; people with typos, three characters in a
row. Each element is then written as one word of letters, so that a tool that cuts text itself cuts out the same sets,
and one that drops digits or punctuation drops nothing.

Where the truth is labels, no threshold is chosen by hand: it is the one of `THRESHOLDS` at which an exact join of these
sets has the highest F1, so no tool's answer has a say in it.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.quality.exact_join import ROUNDING, Pair, join, similarities
from benchmarks.speed.runners.shingling import word_shingles

DATA = Path(__file__).parents[3] / "shared" / "data"
# Sixteen letters for the sixteen digits of a hash; none of them is a vowel, so no word, month or day comes out.
LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
# Not 0.1: with 256 slots, bands of two rows would not find enough there, and bands of one row propose almost all.
THRESHOLDS = tuple(tenths / 10 for tenths in range(2, 10))


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


# The pairs that are looked at; None for all.
Judged = Across | set[Pair] | None


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
    judged: Judged = None
    clusters: list[int] | None = None

    @property
    def texts(self) -> list[str]:
        """The sets as texts whose words are their elements."""
        return [" ".join(elements) for elements in self.sets]

    @property
    def sha256(self) -> str:
        """What tells this corpus from another."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()


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
        ("er/pyjedai_D1", restaurants),
        ("er/pyjedai_D2", products),
        ("er/pyjedai_D4", papers),
        ("er/pyjedai_cora", citations),
        ("er/csv_example_input_with_true_ids.csv", sites),
        *((f"er/febrl/dataset{number}.csv", people) for number in (1, 2, 3)),
        ("er/febrl", two_lists_of_people),
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
    return labelled(folder.name, cut(texts, 3), "word:3", truth)


def clough(folder: Path) -> list[Corpus]:
    """Students' answers and what they were written from: a cut is true, an answer written without it false."""
    return partly_labelled(folder, true={"cut"})


def programs(folder: Path) -> list[Corpus]:
    """Java programs and what they were copied from, at all levels of disguise."""
    return partly_labelled(folder, true={f"L{level}" for level in range(1, 7)})


def partly_labelled(folder: Path, *, true: set[str]) -> list[Corpus]:
    """Return a corpus of which only some pairs have a label; between true and ``non`` nothing is counted."""
    ids, texts = read_documents(folder)
    labels = {ordered(ids[left], ids[right]): label for left, right, label in read_rows(folder / "pairs.tsv")}
    truth = {pair for pair, label in labels.items() if label in true}
    judged = {pair for pair, label in labels.items() if label in true or label == "non"}
    return labelled(folder.name, cut(texts, 3), "word:3", truth, judged=judged)


def licences(folder: Path) -> list[Corpus]:
    """Licence texts, many of them versions of each other."""
    return joined("spdx_licenses", cut(read_documents(folder)[1], 3), "word:3", (0.5, 0.8))


def install_guide(folder: Path) -> list[Corpus]:
    """Chapters in five languages for three architectures; a cluster is a chapter in a language."""
    ids, texts = read_documents(folder)
    names = {ids[name]: cluster for name, cluster in read_rows(folder / "clusters.tsv")}
    clusters = number_names(names[row] for row in range(len(texts)))
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


def restaurants(folder: Path) -> list[Corpus]:
    """Two lists of restaurants, and of their addresses as records of their own."""
    return linkage("restaurants", folder, ("rest1", "rest2"), "|")


def products(folder: Path) -> list[Corpus]:
    """What two shops sell; one of them tells much more of it."""
    return linkage("Abt–Buy", folder, ("abt", "buy"), "|")


def papers(folder: Path) -> list[Corpus]:
    """Papers of DBLP and of ACM."""
    return linkage("DBLP–ACM", folder, ("dblp", "acm"), "%")


def linkage(name: str, folder: Path, lists: tuple[str, str], separator: str) -> list[Corpus]:
    """Return two lists as words of all their columns; only pairs across are judged."""
    left, right = (read_records(folder / f"{one}.csv", separator) for one in lists)
    truth = {(int(one), len(left) + int(other)) for one, other in read_rows(folder / "gt.csv", separator)[1:]}
    return labelled(name, cut([*left, *right], 1), "word:1", truth, judged=Across(len(left)))


def citations(folder: Path) -> list[Corpus]:
    """Citations as people type them, as words of all their columns."""
    sets = cut(read_records(folder / "cora.csv", "|"), 1)
    truth = {ordered(int(one), int(other)) for one, other in read_rows(folder / "cora_gt.csv", "|")}
    return labelled("cora", sets, "word:1", truth, clusters=components(len(sets), truth))


def sites(path: Path) -> list[Corpus]:
    """Places for small children, as words of all columns but two numbers and the name of the list they are from."""
    clusters = number_names(row[0] for row in read_rows(path, ",")[1:])
    sets = cut(read_records(path, ",", first=3), 1)
    return labelled("childcare", sets, "word:1", pairs_within(clusters), clusters=clusters)


def people(path: Path) -> list[Corpus]:
    """Made-up people, some of them again with typos.

    Three characters in a row, not words: on the first list an exact join has an F1 of 1 with them, and of 0.999 with
    words.
    """
    clusters = number_names(names_of(path))
    sets = cut_characters(read_records(path, ","), 3)
    name = path.stem.replace("dataset", "febrl")
    return labelled(name, sets, "char:3", pairs_within(clusters), clusters=clusters)


def two_lists_of_people(folder: Path) -> list[Corpus]:
    """Made-up people, and all of them again with typos; only pairs across are judged."""
    left, right = folder / "dataset4a.csv", folder / "dataset4b.csv"
    numbers = number_names([*names_of(left), *names_of(right)])
    across = Across(len(names_of(left)))
    sets = cut_characters([*read_records(left, ","), *read_records(right, ",")], 3)
    truth = {pair for pair in pairs_within(numbers) if pair in across}
    return labelled("febrl4", sets, "char:3", truth, judged=across)


def labelled(
    name: str,
    sets: list[list[str]],
    shingle: str,
    truth: set[Pair],
    *,
    judged: Judged = None,
    clusters: list[int] | None = None,
) -> list[Corpus]:
    """Return a corpus with labels, at the threshold that suits them best."""
    return [
        Corpus(
            name=name,
            sets=sets,
            shingle=shingle,
            threshold=best_threshold(sets, truth, judged),
            kind="labels",
            truth=truth,
            judged=judged,
            clusters=clusters,
        )
    ]


def best_threshold(sets: list[list[str]], truth: set[Pair], judged: Judged) -> float:
    """Return the tenth at which an exact join has the highest F1; of equal ones, that closest to a half."""
    similar = {pair: value for pair, value in similarities(sets, THRESHOLDS[0]) if judged is None or pair in judged}

    def f1(threshold: float) -> float:
        found = {pair for pair, value in similar.items() if value >= threshold - ROUNDING}
        return 2 * len(found & truth) / (len(found) + len(truth))

    return max(THRESHOLDS, key=lambda threshold: (f1(threshold), -abs(threshold - 0.5)))


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


def cut_characters(texts: Iterable[str], length: int) -> list[list[str]]:
    """Return the set of each text: its windows of ``length`` characters, in lower case and with single blanks."""
    plain = [" ".join(text.lower().split()) for text in texts]
    return [words(text[start : start + length] for start in range(max(1, len(text) - length + 1))) for text in plain]


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


def read_records(path: Path, separator: str, *, first: int = 1) -> list[str]:
    """Return a text for each record: its columns from the ``first`` on, since those before it are numbers."""
    return [" ".join(row[first:]) for row in read_rows(path, separator)[1:]]


def names_of(path: Path) -> list[str]:
    """Return who each record of Febrl is: ``rec-12-org`` and ``rec-12-dup-0`` are ``12``."""
    return [row[0].split("-")[1] for row in read_rows(path, ",")[1:]]


def number_names(names: Iterable[str]) -> list[int]:
    """Return a number for each name, the same for the same."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


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
