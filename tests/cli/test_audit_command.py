"""`minwise audit` and `minwise pairs --exact`: output, files and errors."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, execute, hidden, one_line, run

import minwise as mw
from minwise.results import Audit

FIND = ("--threshold", "0.6", "--shingle", "word:2", "--bands", "8", "--rows", "4")
SETTINGS: dict[str, Any] = {"threshold": 0.6, "shingle": "word:2", "bands": 8, "rows": 4}
SAMPLE = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with 91 texts in two files: 30 groups of three similar texts, and a copy."""
    draw = random.Random(1)
    texts: list[str] = []
    for _ in range(30):
        words = [f"w{draw.randrange(10**6)}" for _ in range(40)]
        changed = [words.copy(), words.copy()]
        for variant, changes in zip(changed, (2, 6), strict=True):
            for position in draw.sample(range(40), changes):
                variant[position] = f"x{draw.randrange(10**6)}"
        texts += [" ".join(variant) for variant in (words, *changed)]
    lines = [json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate([*texts, texts[0]])]
    (tmp_path / "a.jsonl").write_text("".join(lines[:50]))
    (tmp_path / "b.jsonl").write_text("".join(lines[50:]))
    return tmp_path


def audit(folder: Path, *arguments: str) -> Done:
    """Run an audit of both files."""
    return run(folder, "audit", "b.jsonl", "a.jsonl", *FIND, *arguments)


def expected(folder: Path, sample: int = SAMPLE, **options: Any) -> Audit:  # noqa: ANN401 - settings
    """Return the result of the library for both files."""
    return mw.audit([folder / "a.jsonl", folder / "b.jsonl"], sample=sample, **{**SETTINGS, **options})


@pytest.mark.parametrize("options", [{}, {"scheme": "minhash"}, {"bag": True}, {"seed": 7}], ids=str)
def test_json_equals_the_result_of_the_library(folder: Path, options: dict[str, Any]) -> None:
    given = [
        part
        for name, value in options.items()
        for part in ([f"--{name}"] if value is True else [f"--{name}", str(value)])
    ]
    done = audit(folder, "--sample", str(SAMPLE), "--json", *given)
    assert (done.status, done.err) == (OK, "")
    assert json.loads(done.out) == expected(folder, **options).to_dict()
    assert hidden(folder) == []


def test_standard_input_is_audited_by_the_installed_command(folder: Path) -> None:
    data = (folder / "a.jsonl").read_bytes()
    done = execute(folder, "audit", "-", "--json", *FIND, stdin=data)
    assert (done.returncode, done.stderr) == (OK, b"")
    assert json.loads(done.stdout)["documents"] == data.count(b"\n")


def test_summary_shows_recall_precision_and_bins(folder: Path) -> None:
    result = expected(folder)
    done = audit(folder, "--sample", str(SAMPLE))
    assert (done.status, done.err) == (OK, "")
    text = " ".join(done.out.split())
    recall, precision, documents = result.recall, result.precision, result.with_duplicates
    assert recall.value is not None
    assert precision.value is not None
    assert documents.value is not None
    assert f"recall {recall.value:.2%} ({recall.low:.2%} to {recall.high:.2%}) of {recall.of} pairs" in text
    assert f"the S-curve predicts {result.promised:.2%}" in text
    assert f"documents {documents.value:.2%}" in text
    assert f"of {documents.of} with a near-duplicate" in text
    assert f"precision {precision.value:.2%}" in text
    assert f"of {precision.of} candidates" in text
    assert f"{SAMPLE} of {result.distinct} distinct documents" in text
    assert "1 more are identical to one of them" in text
    assert "8 bands × 4 rows" in text
    for row in result.bins:
        assert f"{row.start:.2f} to {row.end:.2f} {row.share.of}" in text
        if row.share.value is not None:
            assert f"{row.share.value:.2%} {row.share.low:.1%} to {row.share.high:.1%} {row.promised:.2%}" in text


def test_summary_of_all_documents_has_no_estimates(folder: Path) -> None:
    done = audit(folder)
    assert "all 90 distinct documents with every other" in done.out
    assert not [line for line in done.out.splitlines() if "about" in line and "note:" not in line]


def test_summary_without_pairs(folder: Path) -> None:
    (folder / "one.jsonl").write_text('{"text": "all alone"}\n')
    done = run(folder, "audit", "one.jsonl")
    assert (done.status, done.err) == (OK, "")
    assert "none of 0 pairs" in done.out


def test_suggested_threshold_is_shown_with_layout_and_reason(tmp_path: Path) -> None:
    """Pairs are near 0.45 and near 0.95; the threshold is 0.8."""
    draw = random.Random(2)
    lines = []
    for changed in [37] * 120 + [3] * 120:  # of 100 words: (100 − 37) / (100 + 37) = 0.46 and 97 / 103 = 0.94
        words = [f"w{draw.randrange(10**9)}" for _ in range(100)]
        other = [*words[changed:], *(f"w{draw.randrange(10**9)}" for _ in range(changed))]
        lines += [json.dumps({"text": " ".join(text)}) + "\n" for text in (words, other)]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    suggestion = mw.audit(tmp_path / "in.jsonl", shingle="word:1").suggestion
    assert suggestion is not None
    done = run(tmp_path, "audit", "in.jsonl", "--shingle", "word:1")
    text = " ".join(done.out.split())
    assert f"note: a threshold of {suggestion.threshold:g} ({suggestion.bands} bands × {suggestion.rows} rows)" in text
    assert suggestion.why in text


def test_quiet_audit_writes_its_file_and_prints_nothing(folder: Path) -> None:
    done = audit(folder, "--quiet", "-o", "measured.json")
    assert (done.status, done.out, done.err) == (OK, "", "")
    assert json.loads((folder / "measured.json").read_bytes()) == expected(folder, sample=20_000).to_dict()


def test_written_file_equals_the_printed_json(folder: Path) -> None:
    """With -o and --json; an earlier file is replaced with --overwrite."""
    (folder / "measured.json").write_text("old")
    done = audit(folder, "--json", "-o", "measured.json", "--overwrite", "--sample", str(SAMPLE))
    assert done.status == OK
    assert json.loads((folder / "measured.json").read_bytes()) == json.loads(done.out)
    assert hidden(folder) == []


def test_output_that_is_an_input_is_rejected(folder: Path) -> None:
    (folder / "a.jsonl").rename(folder / "a.json")
    before = (folder / "a.json").read_bytes()
    done = run(folder, "audit", "a.json", "--format", "jsonl", "-o", "./a.json")
    assert (folder / "a.json").read_bytes() == before
    assert "a.json" in one_line(done, USAGE)


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_wrong_values_are_a_usage_error(folder: Path, arguments: list[str], message: str) -> None:
    """One line, exit code 2, and nothing is written."""
    before = sorted(folder.iterdir())
    assert message in one_line(audit(folder, *arguments), USAGE)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("option", ["--exact", "--verify=none", "--keep=first", "--group=star", "--against=a.jsonl"])
def test_options_of_other_commands_are_rejected(folder: Path, option: str) -> None:
    done = audit(folder, option)
    assert (done.status, done.out) == (USAGE, "")
    assert option.partition("=")[0] in done.err


def test_error_names_a_file_that_cannot_be_read_or_written(folder: Path) -> None:
    assert "none.jsonl" in one_line(run(folder, "audit", "none.jsonl"), INPUT_OUTPUT)
    assert "no/where" in one_line(audit(folder, "-o", "no/where.json"), INPUT_OUTPUT)


def test_report_shows_an_audit_of_the_same_settings(folder: Path) -> None:
    """A copy of the audit is stored; an audit with other settings is rejected, and changes nothing."""
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
    statement = f"{recall.found:,} of {recall.of:,} pairs found"
    assert [statement in re.sub("<[^>]*>", "", html) for html in (plain, page)] == [False, True]
    assert (folder / "out/audit.json").read_bytes() == (folder / "measured.json").read_bytes()


# --- Exact join ---

EXACT = ("--exact", "--threshold", "0.6", "--shingle", "word:2")


def test_exact_pairs_are_all_similar_pairs(folder: Path) -> None:
    """The report has no plan."""
    done = run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "p.jsonl", *EXACT)
    assert (done.status, done.err) == (OK, "")
    rows = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    lines = (folder / "a.jsonl").read_text() + (folder / "b.jsonl").read_text()
    texts = [json.loads(line)["text"] for line in lines.splitlines()]
    sets = [set(shingles.tolist()) for shingles in mw.Shingler("word:2").shingle(texts)]
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
def test_exact_clusters_and_dedup_have_no_plan(folder: Path, command: str) -> None:
    name = "out" if command == "dedup" else "c.jsonl"
    done = run(folder, command, "a.jsonl", "b.jsonl", "-o", name, "--json", *EXACT)
    assert (done.status, done.err) == (OK, "")
    assert json.loads(done.out)["plan"] is None


def test_exact_dry_run_is_described_and_writes_nothing(folder: Path) -> None:
    done = run(folder, "dedup", "a.jsonl", "-o", "out", "--dry-run", *EXACT)
    assert done.status == OK
    assert "exact join finds every pair" in done.out
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("recall", "0.9"), ("scheme", "minhash"), ("slots", "128"), ("bands", "8"), ("rows", "4"), ("verify", "none")],
)
@pytest.mark.parametrize("command", ["pairs", "clusters", "dedup"])
def test_settings_of_a_sketch_are_rejected_with_exact(folder: Path, command: str, option: str, value: str) -> None:
    name = "out" if command == "dedup" else "p.csv"
    done = run(folder, command, "a.jsonl", "-o", name, "--exact", f"--{option}", value)
    assert one_line(done, USAGE).startswith(f"minwise: --{option} must be left out with exact")
    assert not (folder / name).exists()


def test_exact_stream_is_rejected(folder: Path) -> None:
    done = run(folder, "dedup", "-", "-o", "-", "--exact")
    assert "exact must be" in one_line(done, USAGE)


def test_exact_run_resumes_from_its_work_directory(folder: Path) -> None:
    """With other settings it is rejected."""
    arguments = ["pairs", "a.jsonl", "b.jsonl", "--work", "work"]
    assert run(folder, *arguments, *EXACT, "-o", "one.parquet").status == OK
    (folder / "work" / "verified").unlink()
    assert run(folder, *arguments, *EXACT, "-o", "two.parquet", "--threads", "1", "--memory", "256MB").status == OK
    assert (folder / "one.parquet").read_bytes() == (folder / "two.parquet").read_bytes()
    assert "exact" in one_line(run(folder, *arguments, *EXACT[1:], "-o", "three.parquet"), FAILURE)
