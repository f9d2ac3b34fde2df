"""`minwise audit` and `minwise pairs --exact` as a user runs them: what is shown, what is written, what is refused."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, execute, hidden, one_line, run

import minwise as mw

FIND = ("--threshold", "0.6", "--shingle", "word:2", "--bands", "8", "--rows", "4")
SETTINGS: dict[str, Any] = {"threshold": 0.6, "shingle": "word:2", "bands": 8, "rows": 4}
SAMPLE = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are and the command runs: 90 texts in two files, of which two of three have near-duplicates."""
    draw = random.Random(1)
    texts: list[str] = []
    for _ in range(30):
        words = [f"w{draw.randrange(10**6)}" for _ in range(40)]
        changed = [words.copy(), words.copy()]
        for one, places in zip(changed, (2, 6), strict=True):
            for place in draw.sample(range(40), places):
                one[place] = f"x{draw.randrange(10**6)}"
        texts += [" ".join(one) for one in (words, *changed)]
    lines = [json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate([*texts, texts[0]])]
    (tmp_path / "a.jsonl").write_text("".join(lines[:50]))
    (tmp_path / "b.jsonl").write_text("".join(lines[50:]))
    return tmp_path


def audit(folder: Path, *arguments: str) -> Done:
    """The audit of both files."""
    return run(folder, "audit", "b.jsonl", "a.jsonl", *FIND, *arguments)


def expected(folder: Path, sample: int = SAMPLE, **options: Any) -> mw.Audit:  # noqa: ANN401 - settings
    """What the library says of them."""
    return mw.audit([folder / "a.jsonl", folder / "b.jsonl"], sample=sample, **{**SETTINGS, **options})


@pytest.mark.parametrize("options", [{}, {"scheme": "minhash"}, {"bag": True}, {"seed": 7}], ids=str)
def test_json(folder: Path, options: dict[str, Any]) -> None:
    """Is what `mw.audit` gives, and nothing else is printed."""
    given = [
        part
        for name, value in options.items()
        for part in ([f"--{name}"] if value is True else [f"--{name}", str(value)])
    ]
    done = audit(folder, "--sample", str(SAMPLE), "--json", *given)
    assert (done.status, done.err) == (OK, "")
    assert json.loads(done.out) == expected(folder, **options).to_dict()
    assert hidden(folder) == []


def test_the_installed_command(folder: Path) -> None:
    """Of standard input too."""
    data = (folder / "a.jsonl").read_bytes()
    done = execute(folder, "audit", "-", "--json", *FIND, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert json.loads(done.stdout)["documents"] == data.count(b"\n")


def test_the_summary(folder: Path) -> None:
    """Shows recall, promise, precision and bins as they are."""
    result = expected(folder)
    done = audit(folder, "--sample", str(SAMPLE))
    assert (done.status, done.err) == (OK, "")
    text = " ".join(done.out.split())
    recall, precision, documents = result.recall, result.precision, result.with_duplicates
    assert recall.value is not None
    assert precision.value is not None
    assert documents.value is not None
    assert f"recall {recall.value:.2%} ({recall.low:.2%} to {recall.high:.2%}) of {recall.of} pairs" in text
    assert f"the S-curve promises {result.promised:.2%}" in text
    assert f"documents {documents.value:.2%}" in text
    assert f"of {documents.of} with a near-duplicate" in text
    assert f"precision {precision.value:.2%}" in text
    assert f"of {precision.of} candidates" in text
    assert f"{SAMPLE} of {result.distinct} distinct documents" in text
    assert "1 more are identical to one of them" in text
    assert "8 bands × 4 rows" in text
    for one in result.bins:
        assert f"{one.start:.2f} to {one.end:.2f} {one.share.of}" in text
        if one.share.value is not None:
            assert f"{one.share.value:.2%} {one.share.low:.1%} to {one.share.high:.1%} {one.promised:.2%}" in text


def test_the_summary_of_all_documents(folder: Path) -> None:
    """Says so, and estimates nothing."""
    done = audit(folder)
    assert "all 90 distinct documents with every other" in done.out
    assert not [line for line in done.out.splitlines() if "about" in line and "note:" not in line]


def test_the_summary_of_nothing(folder: Path) -> None:
    """Documents without a pair, and none at all."""
    (folder / "one.jsonl").write_text('{"text": "all alone"}\n')
    (folder / "none.jsonl").write_text("")
    for name in ("one.jsonl", "none.jsonl"):
        done = run(folder, "audit", name)
        assert (done.status, done.err) == (OK, "")
        assert "none of 0 pairs" in done.out


def test_a_suggestion_is_shown(tmp_path: Path) -> None:
    """With the threshold, the layout and why; pairs are near 0.45 and near 0.95, the threshold is 0.8."""
    draw = random.Random(2)
    lines = []
    for changed in [37] * 120 + [3] * 120:  # of 100 words: (100 − 37) / (100 + 37) = 0.46 and 97 / 103 = 0.94
        words = [f"w{draw.randrange(10**9)}" for _ in range(100)]
        other = [*words[changed:], *(f"w{draw.randrange(10**9)}" for _ in range(changed))]
        lines += [json.dumps({"text": " ".join(one)}) + "\n" for one in (words, other)]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    suggestion = mw.audit(tmp_path / "in.jsonl", shingle="word:1").suggestion
    assert suggestion is not None
    done = run(tmp_path, "audit", "in.jsonl", "--shingle", "word:1")
    text = " ".join(done.out.split())
    assert f"note: a threshold of {suggestion.threshold:g} ({suggestion.bands} bands × {suggestion.rows} rows)" in text
    assert suggestion.why in text


def test_quiet(folder: Path) -> None:
    """Nothing is printed; -o is still written."""
    done = audit(folder, "--quiet", "-o", "measured.json")
    assert (done.status, done.out, done.err) == (OK, "", "")
    assert json.loads((folder / "measured.json").read_bytes()) == expected(folder, sample=20_000).to_dict()


def test_a_written_file_is_what_is_printed(folder: Path) -> None:
    """With -o and --json both; an earlier file is replaced."""
    (folder / "measured.json").write_text("old")
    done = audit(folder, "--json", "-o", "measured.json", "--sample", str(SAMPLE))
    assert done.status == OK
    assert json.loads((folder / "measured.json").read_bytes()) == json.loads(done.out)
    assert hidden(folder) == []


def test_figures_in_place_of_an_input(folder: Path) -> None:
    """An output that is an input is refused: the input would be gone."""
    (folder / "a.jsonl").rename(folder / "a.json")
    before = (folder / "a.json").read_bytes()
    done = run(folder, "audit", "a.json", "--format", "jsonl", "-o", "./a.json")
    assert (folder / "a.json").read_bytes() == before
    assert "a.json" in one_line(done, USAGE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "0"], "sample must be"),
        (["--sample", "-3"], "sample must be"),
        (["-o", "x.txt"], ".json"),
        (["-o", "x"], ".json"),
        (["--threshold", "7"], "threshold"),
        (["--memory", "1MB"], "memory"),
    ],
    ids=str,
)
def test_wrong_values(folder: Path, arguments: list[str], said: str) -> None:
    """One line, exit code 2, nothing written."""
    before = sorted(folder.iterdir())
    assert said in one_line(audit(folder, *arguments), USAGE)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("option", ["--exact", "--verify=none", "--keep=first", "--group=star", "--against=a.jsonl"])
def test_options_of_other_commands(folder: Path, option: str) -> None:
    """Mean nothing to an audit."""
    done = audit(folder, option)
    assert (done.status, done.out) == (USAGE, "")
    assert option.partition("=")[0] in done.err


def test_files_that_can_not_be_read_or_written(folder: Path) -> None:
    """One line each, with the name."""
    assert "none.jsonl" in one_line(run(folder, "audit", "none.jsonl"), INPUT_OUTPUT)
    assert "no/where" in one_line(audit(folder, "-o", "no/where.json"), INPUT_OUTPUT)


def test_a_report_with_an_audit(folder: Path) -> None:
    """Shows what was measured and keeps a copy; an audit with other settings is refused, and changes nothing."""
    assert run(folder, "dedup", "a.jsonl", "b.jsonl", "-o", "out", "--quiet", *FIND).status == OK
    plain = (folder / "out/report.html").read_text()
    assert audit(folder, "--quiet", "-o", "measured.json").status == OK
    assert audit(folder, "--quiet", "-o", "other.json", "--seed", "9").status == OK
    assert "seed is 9" in one_line(run(folder, "report", "out", "--audit", "other.json"), FAILURE)
    assert (folder / "out/report.html").read_text() == plain
    assert not (folder / "out/audit.json").exists()
    assert run(folder, "report", "out", "--audit", "measured.json").status == OK
    recall = expected(folder, sample=20_000).recall
    page = (folder / "out/report.html").read_text()
    said = f"{recall.found:,} of {recall.of:,} pairs found"
    assert [said in re.sub("<[^>]*>", "", one) for one in (plain, page)] == [False, True]
    assert (folder / "out/audit.json").read_bytes() == (folder / "measured.json").read_bytes()


# --- The exact join ---

EXACT = ("--exact", "--threshold", "0.6", "--shingle", "word:2")


def test_exact_pairs(folder: Path) -> None:
    """Every pair; the report says that there is no plan."""
    done = run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "p.jsonl", *EXACT)
    assert (done.status, done.err) == (OK, "")
    rows = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    lines = (folder / "a.jsonl").read_text() + (folder / "b.jsonl").read_text()
    texts = [json.loads(line)["text"] for line in lines.splitlines()]
    sets = [set(one.tolist()) for one in mw.Shingler("word:2").shingle(texts)]
    truth = {
        (f"d{left}", f"d{right}"): len(sets[left] & sets[right]) / len(sets[left] | sets[right])
        for right in range(len(sets))
        for left in range(right)
        if len(sets[left] & sets[right]) / len(sets[left] | sets[right]) >= 0.6
    }
    assert {(row["left"], row["right"]): row["similarity"] for row in rows} == truth
    assert len(rows) == len(truth) > 30
    report = json.loads(run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "p.csv", "--json", *EXACT).out)
    assert (report["plan"], report["settings"]["exact"], report["pairs"]) == (None, True, len(rows))


@pytest.mark.parametrize("command", ["clusters", "dedup"])
def test_exact_everywhere(folder: Path, command: str) -> None:
    """Clusters and clean corpora too."""
    name = "out" if command == "dedup" else "c.jsonl"
    done = run(folder, command, "a.jsonl", "b.jsonl", "-o", name, "--json", *EXACT)
    assert (done.status, done.err) == (OK, "")
    assert json.loads(done.out)["plan"] is None


def test_a_dry_run_of_an_exact_one(folder: Path) -> None:
    """Says so and writes nothing."""
    done = run(folder, "dedup", "a.jsonl", "-o", "out", "--dry-run", *EXACT)
    assert done.status == OK
    assert "exact join finds every pair" in done.out
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("recall", "0.9"), ("scheme", "minhash"), ("slots", "128"), ("bands", "8"), ("rows", "4"), ("verify", "none")],
)
@pytest.mark.parametrize("command", ["pairs", "clusters", "dedup"])
def test_exact_leaves_nothing_to_chance(folder: Path, command: str, option: str, value: str) -> None:
    """Settings that do are refused in one line that names them."""
    name = "out" if command == "dedup" else "p.csv"
    done = run(folder, command, "a.jsonl", "-o", name, "--exact", f"--{option}", value)
    assert one_line(done, USAGE).startswith(f"minwise: {option} must be left out with exact")
    assert not (folder / name).exists()


def test_a_stream_can_not_be_exact(folder: Path) -> None:
    """One line says why."""
    done = run(folder, "dedup", "-", "-o", "-", "--exact")
    assert "exact must be" in one_line(done, USAGE)


def test_an_exact_run_goes_on(folder: Path) -> None:
    """With what is in the work directory; with other settings it is refused."""
    arguments = ["pairs", "a.jsonl", "b.jsonl", "--work", "work"]
    assert run(folder, *arguments, *EXACT, "-o", "one.parquet").status == OK
    (folder / "work" / "verified").unlink()
    assert run(folder, *arguments, *EXACT, "-o", "two.parquet", "--threads", "1", "--memory", "256MB").status == OK
    assert (folder / "one.parquet").read_bytes() == (folder / "two.parquet").read_bytes()
    assert "exact" in one_line(run(folder, *arguments, *EXACT[1:], "-o", "three.parquet"), FAILURE)
