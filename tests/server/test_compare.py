"""Comparisons over HTTP: the result of the library, without anything that reveals the seed of the index."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import minwise as mw
from minwise.comparison import Comparison
from server.running import Server, serving

SHINGLE, THRESHOLD = "word:2", 0.6
WORDS = [f"word{number}" for number in range(80)]
LONG = " ".join(f"long{number % 997} is{number}" for number in range(4000))
PAIRS = {
    "alike": ("the cat sat on the mat", "the cat sat on a mat"),
    "equal": (" ".join(WORDS), " ".join(WORDS)),
    "strangers": ("one two three four", "five six seven eight"),
    "moved": (" ".join(WORDS), " ".join([*WORDS[50:], *WORDS[:50]])),
    "inside": (" ".join(WORDS[20:40]), " ".join(WORDS)),
    "lines": ("a b c\nd e f\ng h i\n", "a b c\nx y z\r\nd e f\n\ng h i"),
    "ducks": ("🦆🦆 a b c ﬁne e\u0301t\u0301 ½ Straße", "x A, B; C? fine ét\u0301 1⁄2 STRASSE"),
    "nothing": ("", ""),
    "nothing left": ("", "a b c"),
    "no shingles": ("... !", "a"),
    "control": ("a\x00b c\x1b[0m d e f", "a\x00b c\x1b[0m d e g"),
    "long": (LONG, LONG[:20_000] + " changed here " + LONG[20_000:]),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Create two indexes that differ in their secret seeds and in what they store."""
    folder = tmp_path_factory.mktemp("compare")
    stores: list[Literal["text", "sketch"]] = ["text", "sketch"]
    for number, store in enumerate(stores):
        mw.Index.create(
            folder / f"{number}.mw",
            threshold=THRESHOLD,
            shingle=SHINGLE,
            store_text=store == "text",
            sketch_only=store == "sketch",
        ).close()
    return [folder / "0.mw", folder / "1.mw"]


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[Server]:
    """Serve for all tests of this file."""
    with serving(folders[0]) as running:
        yield running


def expected(left: str, right: str) -> Comparison:
    """Return the comparison of the library with the plan and shingles of the index and the public seed."""
    plan = mw.plan(THRESHOLD)
    return mw.compare(left, right, shingler=mw.Shingler(SHINGLE), scheme=mw.FastSketch(slots=plan.slots), plan=plan)


def ask(server: Server, left: str, right: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - rows
    """Return the response for two texts."""
    answer = server.post("/v1/compare", {"left": left, "right": right, **options})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


@pytest.mark.parametrize("kind", PAIRS)
def test_a_comparison_is_that_of_the_library(server: Server, kind: str) -> None:
    """Except for the matching bands, which would reveal the seed."""
    left, right = PAIRS[kind]
    numbers = json.loads(json.dumps(expected(left, right).to_dict()))
    del numbers["bands_fired"]
    found = ask(server, left, right)
    assert found.pop("rows", None) is None
    assert found == numbers


@pytest.mark.parametrize("kind", [kind for kind in PAIRS if kind != "long"])
def test_rows_contain_both_texts(server: Server, kind: str) -> None:
    """As the rows of the library do."""
    left, right = PAIRS[kind]
    rows = ask(server, left, right, rows=True)["rows"]
    listed = [
        {"left": [piece._asdict() for piece in row.left], "right": [piece._asdict() for piece in row.right]}
        for row in expected(left, right).rows()
    ]
    assert rows == listed
    if left.isascii() and left.isprintable():
        assert "".join(piece["text"] for row in rows for piece in row["left"]) == left


def test_rows_of_long_texts_are_those_around_differences(server: Server) -> None:
    """Omitted parts are marked."""
    left, right = PAIRS["long"]
    body = ask(server, left, right, rows=True)["rows"]
    pieces = [piece for row in body for piece in (*row["left"], *row["right"])]
    assert "gap" in {piece["kind"] for piece in pieces}
    assert any("changed here" in piece["text"] for piece in pieces if piece["kind"] == "only")
    assert sum(len(piece["text"]) for piece in pieces) < len(left)


def test_rows_are_optional(server: Server) -> None:
    left, right = PAIRS["moved"]
    with_rows = ask(server, left, right, rows=True)
    assert with_rows.pop("rows")
    without = ask(server, left, right, rows=False)
    assert without.pop("rows", None) is None
    assert without == with_rows


def test_the_result_does_not_depend_on_the_secret_seed(server: Server, folders: list[Path]) -> None:
    with serving(folders[1], "--read-only") as other:
        assert_alike(server, other, folders)


def assert_alike(server: Server, other: Server, folders: list[Path]) -> None:
    """Check that two servers return the same for pairs of several similarities."""
    seeds = set()
    for folder in folders:
        with mw.Index.open(folder) as index:
            seeds.add(index.shingler.seed)
    assert len(seeds) == 2
    draw = random.Random(1)
    estimates = set()
    for _ in range(20):
        left, right = (" ".join(draw.choices(WORDS[:30], k=60)) for _ in range(2))
        first, second = (ask(one, left, right, rows=True) for one in (server, other))
        assert first == second
        assert "bands_fired" not in first
        assert str(next(iter(seeds))) not in json.dumps(first)
        estimates.add(first["estimate"]["value"])
    assert len(estimates) > 1


def test_a_comparison_is_symmetric(server: Server) -> None:
    for left, right in PAIRS.values():
        there, back = ask(server, left, right), ask(server, right, left)
        assert there["similarity"] == back["similarity"]
        assert (there["only_left"], there["spans_left"]) == (back["only_right"], back["spans_right"])
        assert there["containment_left"] == back["containment_right"]


def test_compared_texts_are_not_stored(server: Server) -> None:
    before = server.get("/v1/stats").json["documents"]
    ask(server, " ".join(WORDS), " ".join(WORDS))
    assert server.post("/v1/query", {"text": " ".join(WORDS)}).json["hits"] == []
    assert server.get("/v1/stats").json["documents"] == before


@pytest.mark.parametrize(
    "body",
    [
        {}, {"left": "a"}, {"right": "a"}, {"left": "a", "right": None}, {"left": 1, "right": "a"}, [], "a", None,
        {"left": "a", "right": "b", "rows": 1}, {"left": "a", "right": "b", "rows": None},
        {"left": "a", "right": "b", "shingle": "word:1"},
    ],
)  # fmt: skip
def test_invalid_comparisons_are_refused(server: Server, body: object) -> None:
    answer = server.post("/v1/compare", json.dumps(body).encode())
    assert (answer.status, answer.error) == (422, "bad_value")


def test_spans_of_byte_shingles_are_code_points(tmp_path: Path) -> None:
    path = tmp_path / "bytes.mw"
    mw.Index.create(path, shingle="byte:4").close()
    left, right = "🦆üß one shared tail", "x🦆 one shared tail"
    with serving(path) as server:
        found = ask(server, left, right)
        assert [left[start:end] for start, end in found["spans_left"]] == ["🦆", " one shared tail"]
        assert [right[start:end] for start, end in found["spans_right"]] == ["🦆 one shared tail"]
        places = [(left[slice(*one["left"])], right[slice(*one["right"])]) for one in found["passages"]]
        assert places == [("🦆", "🦆"), (" one shared tail", " one shared tail")]


def test_the_estimate_is_that_of_the_scheme(tmp_path: Path) -> None:
    """With the slots of the plan; another scheme has another estimate."""
    path = tmp_path / "scheme.mw"
    mw.Index.create(path, shingle="char:5", scheme="minhash", bands=60, rows=5, bag=True).close()
    plan = mw.plan(0.8, bands=60, rows=5)
    left, right = PAIRS["inside"]
    shingler = mw.Shingler("char:5", bag=True)
    compared = mw.compare(left, right, shingler=shingler, scheme=mw.MinHash(slots=300), plan=plan)
    assert compared.estimate != mw.compare(left, right, shingler=shingler, scheme=mw.FastSketch(slots=300)).estimate
    with serving(path) as server:
        found = ask(server, left, right)
        assert found["estimate"] == json.loads(json.dumps(compared.to_dict()["estimate"]))
        assert (found["similarity"], found["plan"]) == (compared.similarity, plan.to_dict())
