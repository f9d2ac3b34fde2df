"""Numbers that the collaborative filtering example prints."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "collaborative_filtering.py"
INVOICES = ROOT.parent / "shared" / "data" / "sets" / "onlineretail_invoices.txt"


def printed(likes: Path) -> str:
    """Return what the example prints."""
    command = [sys.executable, str(SCRIPT), str(likes)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout


def test_suggestions_follow_from_similar_users() -> None:
    """The guide shows the output of this example; this test checks its meaning."""
    example = runpy.run_path(str(SCRIPT))
    likes = example["read_likes"](ROOT / "examples" / "likes.csv")
    neighbours = example["similar_users"](likes, 0.4)
    assert {other for _, other in neighbours["ada"]} == {"bela", "cora", "dina"}
    assert "mo" not in neighbours
    assert example["suggest"]("ada", likes, neighbours) == ["Gulls over Stenby", "Static"]
    assert example["suggest"]("mo", likes, neighbours) == []
    for user, near in neighbours.items():
        for similarity, other in near:
            assert similarity == len(likes[user] & likes[other]) / len(likes[user] | likes[other])


def test_one_like_is_hidden_from_each_user_with_enough_likes() -> None:
    example = runpy.run_path(str(SCRIPT))
    likes = {"a": {"1", "2", "3", "4"}, "b": {"1", "2", "3"}}
    seen, hidden = example["hide_one_each"](likes)
    assert list(hidden) == ["a"]
    assert seen["a"] | {hidden["a"]} == likes["a"]
    assert hidden["a"] not in seen["a"]
    assert seen["b"] == likes["b"]
    assert example["hide_one_each"](likes) == (seen, hidden)


@pytest.mark.skipif(not INVOICES.is_file(), reason="the invoices of ../shared/data are missing")
def test_similar_invoices_predict_better_than_popularity() -> None:
    assert printed(INVOICES).splitlines() == [
        "22,064 users like 4,060 items, 522,097 likes",
        "177,952 pairs of users are at least 0.2 similar; 15,363 users are in one",
        "536365 is like 536787 (0.54), 536602 (0.46), 536600 (0.46)",
        "people like 536365 also liked: 21068, 21071, 37370",
        "a hidden like is among 10 suggestions for 3,036 (28.6%) of 10,605 users,",
        "and for 533 (5.0%) if what is most popular is suggested",
    ]
