"""Results of the examples, and the numbers on their pages."""

import csv
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import minwise as mw

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NEWSROOM = EXAMPLES / "newsroom"
CLOUGH = ROOT.parent / "shared" / "data" / "text" / "clough"
SETTINGS: dict[str, Any] = {"shingle": "word:3", "threshold": 0.5}
has_clough = pytest.mark.skipif(not CLOUGH.is_dir(), reason="the labelled answers of ../shared/data are missing")


def true_pairs() -> dict[tuple[str, str], float]:
    """Return the similarity of every true pair of the newsroom."""
    with (NEWSROOM / "pairs.tsv").open(encoding="utf-8", newline="") as file:
        return {(row["left"], row["right"]): float(row["similarity"]) for row in csv.DictReader(file, delimiter="\t")}


def removed_by(**options: str) -> dict[str, str]:
    """Return the kept document for every removed one of the newsroom."""
    removed = mw.dedup(NEWSROOM / "docs.jsonl", **{**SETTINGS, **options}).removed
    return dict(zip(removed["id"].to_pylist(), removed["kept_id"].to_pylist(), strict=True))


def test_newsroom_truth_is_what_its_script_computes() -> None:
    table = runpy.run_path(str(NEWSROOM / "make_truth.py"))["make_table"]()
    assert (NEWSROOM / "pairs.tsv").read_text(encoding="utf-8") == table


def test_newsroom_pairs_equal_those_of_an_independent_script() -> None:
    rows = mw.pairs(NEWSROOM / "docs.jsonl", **SETTINGS).to_pylist()
    found = {(row["left"], row["right"]): row["similarity"] for row in rows}
    assert len(found) == len(rows) == 13
    assert found == pytest.approx(true_pairs(), abs=1e-12)


def test_newsroom_keeps_the_first_of_each_star() -> None:
    """Of the chain only the middle document is removed."""
    removed = removed_by()
    assert removed == {
        "apple-cake-scaled": "apple-cake",
        "closed-loud": "closed",
        "ferry-caps": "ferry",
        "ferry-wire": "ferry",
        "leek-soup-blog": "leek-soup",
        "library-zh-wednesday": "library-zh",
        "market-ja-august": "market-ja",
        "market-th-sunday": "market-th",
        "museum-brief": "museum",
        "school-roof-later": "school-roof",
        "storm-1200": "storm-0600",
    }
    assert {*removed.items()} <= {(right, left) for left, right in true_pairs()}


def test_newsroom_components_join_the_whole_chain() -> None:
    """Both later reports are removed, although the last is not similar to the first."""
    assert removed_by(group="components") == {**removed_by(), "storm-1800": "storm-0600"}


def test_newsroom_keeps_the_longest_version_with_keep_longest() -> None:
    removed = removed_by(keep="longest")
    assert removed["school-roof"] == "school-roof-later"
    assert removed["museum-brief"] == "museum"
    assert "school-roof-later" not in removed


def test_newsroom_page_has_existing_ids_and_true_similarities() -> None:
    page = (NEWSROOM / "README.md").read_text(encoding="utf-8")
    ids = set(mw.clusters(NEWSROOM / "docs.jsonl", **SETTINGS)["id"].to_pylist())
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+`) \| ([\d.]+) \|$", page, re.MULTILINE)
    named = [(re.findall(r"`([^`]+)`", names), float(value)) for names, value in rows]
    assert len(named) >= 12
    assert {name for names, _ in named for name in names} <= ids
    truth = true_pairs()
    for (left, right), value in ((names, value) for names, value in named if value >= SETTINGS["threshold"]):
        assert round(truth[left, right], 3) == value


@has_clough
def test_plagiarism_ranks_answers_by_how_much_is_copied() -> None:
    """The means fall from pasted over lightly and heavily revised to own answers; containment ranks better."""
    example = runpy.run_path(str(EXAMPLES / "plagiarism.py"))
    matches = example["rank_answers"](CLOUGH)
    means = example["mean_per_label"](matches)
    for measure in (1, 2):
        values = [means[label][measure] for label in ("cut", "light", "heavy", "non")]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == 4
    labels = [match.label for match in matches]
    contained, similar = (
        example["rank_quality"]([getattr(match, name) for match in matches], labels)
        for name in ("containment", "similarity")
    )
    assert contained > similar > 0.5


@has_clough
def test_plagiarism_page_shows_the_actual_output() -> None:
    page = (EXAMPLES / "plagiarism.md").read_text(encoding="utf-8")
    command = [sys.executable, "examples/plagiarism.py", str(CLOUGH)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    printed = re.sub(r" +$", "", done.stdout, flags=re.MULTILINE)
    assert f"$ python examples/plagiarism.py ../shared/data/text/clough\n{printed}```" in page
    *_, contained, similar = printed.split()
    assert f"By containment in {float(contained):.1%}".replace("%", " %") in page
    assert f"by similarity in {float(similar):.1%}".replace("%", " %") in page


@has_clough
@pytest.mark.parametrize("shingle", ["word:1", "word:3", "word:5"])
def test_plagiarism_page_has_the_measured_quality_of_each_shingle(shingle: str) -> None:
    example = runpy.run_path(str(EXAMPLES / "plagiarism.py"))
    matches = example["rank_answers"](CLOUGH, shingle)
    labels = [match.label for match in matches]
    contained = example["rank_quality"]([match.containment for match in matches], labels)
    similar = example["rank_quality"]([match.similarity for match in matches], labels)
    page = (EXAMPLES / "plagiarism.md").read_text(encoding="utf-8")
    assert f"| `{shingle}` | {contained:.3f} | {similar:.3f} |" in page


def test_plagiarism_ranks_a_folder_without_labels(tmp_path: Path) -> None:
    lines = ['{"id": "orig", "text": "one two three four five six"}', '{"id": "mine", "text": "two three four five"}']
    (tmp_path / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (match,) = runpy.run_path(str(EXAMPLES / "plagiarism.py"))["rank_answers"](tmp_path)
    assert (match.answer, match.original, match.containment, match.similarity) == ("mine", "orig", 1.0, 0.5)


@pytest.mark.parametrize(
    ("scores", "labels", "quality"),
    [
        ([0.9, 0.5, 0.1], ["cut", "light", "non"], 1.0),
        ([0.1, 0.9], ["cut", "non"], 0.0),
        ([0.5, 0.5], ["non", "cut"], 0.5),
        ([0.9, 0.1, 0.5], ["cut", "cut", "non"], 0.5),
        ([0.9, 0.1], ["non", "non"], 0.0),
    ],
)
def test_rank_quality_is_the_share_of_pairs_in_the_right_order(
    scores: list[float], labels: list[str], quality: float
) -> None:
    assert runpy.run_path(str(EXAMPLES / "plagiarism.py"))["rank_quality"](scores, labels) == quality


def test_near_images_are_of_one_photograph(tmp_path: Path) -> None:
    """280 of the 285 pairs are found, and none of two photographs; neighbours of a digit are the same digit."""
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    from PIL import Image

    picture = tmp_path / "near.png"
    command = [sys.executable, "examples/near_images.py", str(picture)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert "114 pictures of 19 photographs: 280 pairs within 0.5\n280 of them are of one photograph\n" in printed
    for line in re.findall(r"digit \d+, a (\d): its 10 nearest are (.*)", printed):
        assert set(line[1].split()) == {line[0]}
    with Image.open(picture) as drawn:
        assert drawn.width > 1000
        assert len(drawn.convert("RGB").getcolors(1 << 24) or []) > 1000
