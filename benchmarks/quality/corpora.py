r"""Real corpora with their truth, converted to the sets that every tool is given.

Documents are converted to sets once: windows of lower-cased ``\w+`` words, or of three characters for people with
typos. Each element is then written as one word of letters, so that a tool that splits texts itself gets the same sets,
and a tool that drops digits or punctuation drops nothing.

For labelled corpora the threshold is not chosen by hand: it is the one of `THRESHOLDS` at which an exact join of the
sets has the highest F1, so it does not depend on the answer of any tool.
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
# Sixteen consonants for the sixteen digits of a hash; without vowels no real word, month or day can result.
LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")
# Not 0.1: with 256 slots, bands of two rows would miss too many pairs, and bands of one row propose almost all pairs.
THRESHOLDS = tuple(tenths / 10 for tenths in range(2, 10))


@dataclass(frozen=True, slots=True)
class CrossPairs:
    """The pairs of a document of a first list with a document of a second list.

    Attributes:
        first: Number of documents in the first list.
    """

    first: int

    def __contains__(self, pair: object) -> bool:
        """Return whether a pair has one document of each list."""
        return isinstance(pair, tuple) and pair[0] < self.first <= pair[1]


# The pairs that are judged; None for all.
Judged = CrossPairs | set[Pair] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Sets and their true pairs.

    Attributes:
        name: Shown in the table.
        sets: The elements of each document, sorted.
        shingle: Kind of the elements.
        threshold: Minimum similarity of the pairs that a tool should report.
        kind: Origin of the truth: ``labels`` or ``join``.
        truth: The pairs that should be found.
        judged: The pairs that are judged; None for all.
        clusters: The number of the true cluster of each document, if known.
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
        """The sets as texts whose words are the elements."""
        return [" ".join(elements) for elements in self.sets]

    @property
    def sha256(self) -> str:
        """SHA-256 of the texts, which identifies the corpus."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()


def load_corpora(data: Path = DATA) -> list[Corpus]:
    """Return all corpora whose files exist; print the missing ones."""
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
    for path, load in loaders:
        if (data / path).exists():
            found += load(data / path)
        else:
            print(f"{path}: missing, skipped")
    return found


def articles(folder: Path) -> list[Corpus]:
    """Return news with planted copies; a pair that was not planted is false."""
    ids, texts = read_documents(folder)
    truth = {ordered(ids[left], ids[right]) for left, right, _ in read_rows(folder / "pairs.tsv")}
    return labelled(folder.name, word_sets(texts, 3), "word:3", truth)


def clough(folder: Path) -> list[Corpus]:
    """Return student answers and their sources: pasted answers are true, independent answers false."""
    return partly_labelled(folder, true={"cut"})


def programs(folder: Path) -> list[Corpus]:
    """Return Java programs and their originals, at all levels of disguise."""
    return partly_labelled(folder, true={f"L{level}" for level in range(1, 7)})


def partly_labelled(folder: Path, *, true: set[str]) -> list[Corpus]:
    """Return a corpus in which only some pairs have a label; labels other than true and ``non`` are ignored."""
    ids, texts = read_documents(folder)
    labels = {ordered(ids[left], ids[right]): label for left, right, label in read_rows(folder / "pairs.tsv")}
    truth = {pair for pair, label in labels.items() if label in true}
    judged = {pair for pair, label in labels.items() if label in true or label == "non"}
    return labelled(folder.name, word_sets(texts, 3), "word:3", truth, judged=judged)


def licences(folder: Path) -> list[Corpus]:
    """Return licence texts, many of them versions of each other."""
    return joined("spdx_licenses", word_sets(read_documents(folder)[1], 3), "word:3", (0.5, 0.8))


def install_guide(folder: Path) -> list[Corpus]:
    """Return chapters in five languages for three architectures; a cluster is a chapter in a language."""
    ids, texts = read_documents(folder)
    names = {ids[name]: cluster for name, cluster in read_rows(folder / "clusters.tsv")}
    clusters = number_names(names[row] for row in range(len(texts)))
    return joined("installguide_sample", word_sets(texts, 5), "word:5", (0.5, 0.8), clusters)


def groceries(path: Path) -> list[Corpus]:
    """Return baskets of a shop: small sets, many of them similar by chance."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return joined("groceries", [encode_elements(line.split(",")) for line in lines], "set", (0.8,))


def invoices(path: Path) -> list[Corpus]:
    """Return invoices of a web shop."""
    lines = path.read_text(encoding="utf-8").splitlines()
    sets = [encode_elements(line.partition("\t")[2].split()) for line in lines]
    return joined("onlineretail", sets, "set", (0.5, 0.8))


def restaurants(folder: Path) -> list[Corpus]:
    """Return two lists of restaurants and, as separate records, of their addresses."""
    return linkage("restaurants", folder, ("rest1", "rest2"), "|")


def products(folder: Path) -> list[Corpus]:
    """Return the products of two shops, of which one has much longer descriptions."""
    return linkage("Abt–Buy", folder, ("abt", "buy"), "|")


def papers(folder: Path) -> list[Corpus]:
    """Return papers of DBLP and of ACM."""
    return linkage("DBLP–ACM", folder, ("dblp", "acm"), "%")


def linkage(name: str, folder: Path, lists: tuple[str, str], separator: str) -> list[Corpus]:
    """Return two lists as words of all columns; only pairs across the lists are judged."""
    left, right = (read_records(folder / f"{name}.csv", separator) for name in lists)
    truth = {(int(row), len(left) + int(other)) for row, other in read_rows(folder / "gt.csv", separator)[1:]}
    return labelled(name, word_sets([*left, *right], 1), "word:1", truth, judged=CrossPairs(len(left)))


def citations(folder: Path) -> list[Corpus]:
    """Return citations as typed by people, as words of all columns."""
    sets = word_sets(read_records(folder / "cora.csv", "|"), 1)
    truth = {ordered(int(row), int(other)) for row, other in read_rows(folder / "cora_gt.csv", "|")}
    return labelled("cora", sets, "word:1", truth, clusters=components(len(sets), truth))


def sites(path: Path) -> list[Corpus]:
    """Return childcare sites as words of all columns except two numbers and the name of the source list."""
    clusters = number_names(row[0] for row in read_rows(path, ",")[1:])
    sets = word_sets(read_records(path, ",", first=3), 1)
    return labelled("childcare", sets, "word:1", pairs_within(clusters), clusters=clusters)


def people(path: Path) -> list[Corpus]:
    """Return synthetic people, some of them duplicated with typos.

    Elements are three consecutive characters, not words: on the first list an exact join has an F1 of 1 with them, and
    of 0.999 with words.
    """
    clusters = number_names(entity_names(path))
    sets = character_sets(read_records(path, ","), 3)
    name = path.stem.replace("dataset", "febrl")
    return labelled(name, sets, "char:3", pairs_within(clusters), clusters=clusters)


def two_lists_of_people(folder: Path) -> list[Corpus]:
    """Return synthetic people and a second list of all of them with typos; only pairs across are judged."""
    left, right = folder / "dataset4a.csv", folder / "dataset4b.csv"
    numbers = number_names([*entity_names(left), *entity_names(right)])
    across = CrossPairs(len(entity_names(left)))
    sets = character_sets([*read_records(left, ","), *read_records(right, ",")], 3)
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
    """Return a labelled corpus, at the threshold that suits the labels best."""
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
    """Return the tenth at which an exact join has the highest F1; among ties, the one closest to 0.5."""
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


def word_sets(texts: Iterable[str], length: int) -> list[list[str]]:
    """Return the set of each text: windows of ``length`` lower-cased words."""
    return [encode_elements(word_shingles(text, length)) for text in texts]


def character_sets(texts: Iterable[str], length: int) -> list[list[str]]:
    """Return the set of each text: windows of ``length`` characters, in lower case and with single blanks."""
    plain = [" ".join(text.lower().split()) for text in texts]
    return [
        encode_elements(text[start : start + length] for start in range(max(1, len(text) - length + 1)))
        for text in plain
    ]


def encode_elements(elements: Iterable[str]) -> list[str]:
    """Return each distinct element as a word of fifteen consonants, sorted."""
    return sorted({hashlib.sha256(element.encode()).hexdigest()[:15].translate(LETTERS) for element in elements})


def read_documents(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Return the row number of each id, and the texts."""
    with (folder / "docs.jsonl").open(encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    return {row["id"]: number for number, row in enumerate(documents)}, [row["text"] for row in documents]


def read_rows(path: Path, separator: str = "\t") -> list[list[str]]:
    """Return the cells of every line."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=separator))


def read_records(path: Path, separator: str, *, first: int = 1) -> list[str]:
    """Return a text for each record: its columns starting with ``first``; earlier columns are numbers."""
    return [" ".join(row[first:]) for row in read_rows(path, separator)[1:]]


def entity_names(path: Path) -> list[str]:
    """Return the entity of each Febrl record: ``rec-12-org`` and ``rec-12-dup-0`` are ``12``."""
    return [row[0].split("-")[1] for row in read_rows(path, ",")[1:]]


def number_names(names: Iterable[str]) -> list[int]:
    """Return a number for each name; equal names have equal numbers."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


def ordered(left: int, right: int) -> Pair:
    """Return a pair with the smaller number first."""
    return (left, right) if left < right else (right, left)


def components(count: int, pairs: Iterable[Pair]) -> list[int]:
    """Return for each of ``count`` documents the smallest document number in its connected component."""
    parents = list(range(count))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    for left, right in pairs:
        low, high = sorted((root(left), root(right)))
        parents[high] = low
    return [root(number) for number in range(count)]


def pairs_within(clusters: Sequence[int]) -> set[Pair]:
    """Return every pair of documents of one cluster."""
    members: dict[int, list[int]] = defaultdict(list)
    for number, cluster in enumerate(clusters):
        members[cluster].append(number)
    return {pair for rows in members.values() for pair in combinations(rows, 2)}
