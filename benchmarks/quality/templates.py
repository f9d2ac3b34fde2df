"""Pages of one template: how many distinct ones deduplication removes, with and without ``discount="common"``.

``python -m benchmarks.quality.templates`` makes corpora of templated pages, runs on them and on real texts, and writes
a record. Every page has a frame (header, navigation, footer) that all pages of its site share, and content of its own.
Edited copies of some pages, with a few words changed, are the true pairs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minwise as mw
from benchmarks.quality.corpora import (
    DATA,
    components,
    number_names,
    pairs_within,
    read_documents,
    read_rows,
)
from benchmarks.quality.exact_join import Pair
from benchmarks.record_files import command_line, write_json
from benchmarks.targets import align_rows
from minwise.sketches.frequencies import FrequencyTable

SEED = 1
WORDS = 20_000
# Pages of each site, and the share of the frame in the words of the site.
SITES = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85)
PAGES, COPIES = 500, 50
FRAME_WORDS, SENTENCE_WORDS, SHORTEST_CONTENT = 300, 12, 10
# Share of the words of the content that an edit changes, at least one.
EDITED = 0.02
SHINGLES, THRESHOLD = ("word:5", "word:3"), 0.8


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts and the pairs of them that are true.

    Attributes:
        name: Name of the corpus.
        texts: The texts.
        truth: Pairs of row numbers; None if there are no labels.
    """

    name: str
    texts: list[str]
    truth: set[Pair] | None

    @property
    def groups(self) -> list[int]:
        """Number of the group of each text; a true pair is in one group."""
        return components(len(self.texts), self.truth or set())


class Writer:
    """Writes sentences of words that it invents; rare words are as frequent as in a language."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
        words = {"".join(self.random.choices(syllables, k=self.random.randint(1, 4))): None for _ in range(WORDS)}
        self.words = list(words)

    def word(self) -> str:
        """Return a word; the word of rank r has a frequency in proportion to 1/r."""
        return self.words[int(len(self.words) ** self.random.random()) - 1]

    def text(self, words: int) -> str:
        """Return sentences of so many words in total."""
        chosen = [self.word() for _ in range(words)]
        sentences = (chosen[start : start + SENTENCE_WORDS] for start in range(0, words, SENTENCE_WORDS))
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def edited(self, text: str) -> str:
        """Return a text with a few words replaced."""
        words = text.split(" ")
        for place in self.random.sample(range(len(words)), max(1, round(EDITED * len(words)))):
            words[place] = self.word()
        return " ".join(words)


def templated(name: str, shares: Sequence[float], pages: int = PAGES, copies: int = COPIES) -> Texts:
    """Return the pages of sites, each site with a frame of its own, followed by edited copies of some pages.

    Args:
        name: Name of the corpus.
        shares: Share of the frame in the words of each site. Lengths of contents are distributed exponentially.
        pages: Distinct pages of each site.
        copies: Edited copies of each site.
    """
    writer = Writer(SEED)
    texts, copied, truth = list[str](), list[str](), set[Pair]()
    for share in shares:
        header, footer = writer.text(FRAME_WORDS * 2 // 3), writer.text(FRAME_WORDS // 3)
        mean = FRAME_WORDS * (1 - share) / share - SHORTEST_CONTENT
        contents = [writer.text(SHORTEST_CONTENT + int(writer.random.expovariate(1 / mean))) for _ in range(pages)]
        for page in writer.random.sample(range(pages), copies):
            truth.add((len(texts) + page, len(shares) * pages + len(copied)))
            copied.append(f"{header}\n{writer.edited(contents[page])}\n{footer}")
        texts += (f"{header}\n{content}\n{footer}" for content in contents)
    return Texts(name, texts + copied, truth)


def load(data: Path) -> Iterator[Texts]:
    """Yield the corpora: templated pages, then those of texts whose files exist."""
    yield templated("templates, six sites", SITES)
    yield templated("templates, one site", [0.75], pages=3000, copies=300)
    for folder in (
        data / "text" / name for name in ("articles_2500", "clough", "spdx_licenses", "installguide_sample")
    ):
        if folder.is_dir():
            yield Texts(folder.name, read_documents(folder)[1], read_truth(folder))
    if (folder := data / "code" / "irplag").is_dir():
        yield Texts(folder.name, read_documents(folder)[1], read_truth(folder))


def read_truth(folder: Path) -> set[Pair] | None:
    """Return the true pairs of a corpus; None if it has no labels."""
    ids, texts = read_documents(folder)
    if (clusters := folder / "clusters.tsv").exists():
        names = {ids[name]: cluster for name, cluster in read_rows(clusters)}
        return pairs_within(number_names(names[row] for row in range(len(texts))))
    if not (folder / "pairs.tsv").exists():
        return None
    rows = read_rows(folder / "pairs.tsv")
    return {
        (min(pair), max(pair)) for pair in ((ids[left], ids[right]) for left, right, label in rows if label != "non")
    }


def measure(corpus: Texts, shingle: str) -> dict[str, Any]:
    """Return what is removed at `THRESHOLD`, and at the highest threshold with the recall of plain deduplication."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "common.frequencies"
        runs = [
            run(corpus, shingle, THRESHOLD),
            run(corpus, shingle, THRESHOLD, discount="common", save_frequencies=table),
        ]
        true = {"none": true_similarities(corpus, shingle, None), "common": true_similarities(corpus, shingle, table)}
    found = int(np.count_nonzero(true["none"] >= THRESHOLD))
    for discount, similarities in true.items():
        if found and (equal := equal_recall(similarities, found)) != THRESHOLD:
            runs.append(run(corpus, shingle, equal, discount=discount))
    for one in runs if corpus.truth else ():
        one["recall"] = float(np.mean(true[one["discount"]] >= one["threshold"]))
    labelled = None if corpus.truth is None else len(corpus.truth)
    about = {"name": corpus.name, "shingle": shingle, "documents": len(corpus.texts), "true": labelled}
    runs.sort(key=lambda one: (one["discount"] == "common", one["threshold"] != THRESHOLD))
    return {**about, "distinct": len(set(corpus.groups)), "runs": runs}


def run(corpus: Texts, shingle: str, threshold: float, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - any settings
    """Return how many texts are removed, of how many groups none is kept, and the precision of the removals."""
    result = mw.dedup(corpus.texts, shingle=shingle, threshold=threshold, **options)
    removed, groups = result.removed, corpus.groups
    figures = {"discount": options.get("discount", "none"), "threshold": threshold, "removed": removed.num_rows}
    if corpus.truth is None:
        return figures
    pairs = zip(removed["id"].to_pylist(), removed["kept_id"].to_pylist(), strict=True)
    right = sum(groups[left] == groups[right] for left, right in pairs)
    kept = {group for group, keep in zip(groups, result.keep, strict=True) if keep}
    precision = right / removed.num_rows if removed.num_rows else 1.0
    return {**figures, "lost": len(set(groups)) - len(kept), "precision": precision}


def true_similarities(corpus: Texts, shingle: str, table: Path | None) -> NDArray[np.float64]:
    """Return the exact similarities of the true pairs; weighted ones with a table of frequencies."""
    sets = mw.Shingler(shingle).shingle(corpus.texts)
    weights = None if table is None else FrequencyTable.load(table).weights(1)

    def total(elements: NDArray[np.uint64]) -> float:
        return float(len(elements)) if weights is None else float(weights.of(elements).sum())

    pairs = ((sets[left], sets[right]) for left, right in sorted(corpus.truth or ()))
    return np.array([total(np.intersect1d(*pair)) / max(total(np.union1d(*pair)), 1e-9) for pair in pairs])


def equal_recall(similarities: NDArray[np.float64], pairs: int) -> float:
    """Return the highest threshold in hundredths that so many true pairs reach."""
    return max(0.01, float(np.floor(np.sort(similarities)[-pairs] * 100) / 100))


def main() -> None:
    """Run the benchmark."""
    parser = command_line("quality.templates", __doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="directory of text and code")
    settings = parser.parse_args()
    if not settings.data.is_dir():
        sys.exit(f"{settings.data}: the corpora are missing; set --data DIR")
    measured = [measure(corpus, shingle) for corpus in load(settings.data) for shingle in SHINGLES]
    print(align_rows([list(COLUMNS), *map(list, figure_rows({"corpora": measured}))], text_columns=1))
    if settings.record:
        print(f"written to {write_json({'corpora': measured}, benchmark='templates')}")


COLUMNS = ("corpus", "shingle", "true pairs", "discount", "threshold", "recall", "removed", "lost", "precision")


def figure_rows(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each corpus, shingle and run of a record."""
    for corpus in record["corpora"]:
        name = f"{corpus['name']}: {corpus['documents']:,}"
        true = "–" if corpus["true"] is None else f"{corpus['true']:,}"
        for one in corpus["runs"]:
            yield name, corpus["shingle"], true, one["discount"], f"{one['threshold']:g}", *_figures(one)


def _figures(one: dict[str, Any]) -> tuple[str, ...]:
    if "recall" not in one:
        return "–", f"{one['removed']:,}", "–", "–"
    return f"{one['recall']:.3f}", f"{one['removed']:,}", f"{one['lost']:,}", f"{one['precision']:.3f}"


if __name__ == "__main__":
    main()
