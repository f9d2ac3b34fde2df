"""`minwise index add --unique`: every line is decided on, durably, before the next is read."""

import contextlib
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, INTERRUPTED, OK, USAGE, Done, Job, one_line, resume, run
from support.fault_corpora import documents
from support.piped import DEADLINE_SECONDS, next_line, running
from support.small_corpus import FERRY, KEPT, ROWS, TRAIN, json_lines, parse_json_lines, write

import minwise as mw

UNIQUE = ("add", "news.mw", "-", "--unique")


def stream(folder: Path, data: bytes, *options: str) -> Done:
    """Run the command with its input in a file."""
    (folder / "stdin").write_bytes(data)
    return run(folder, "index", *UNIQUE, *options, job=Job(stdin=str(folder / "stdin")))


def decision(
    document_id: str | int | None, fate: str, of: str | None = None, similarity: float | None = None
) -> dict[str, Any]:
    """Return a decision as it is printed."""
    kept = fate in ("added", "replaced", "unchanged")
    return {
        "id": document_id, "fate": fate, "kept": kept, "duplicate_of": of, "similarity": similarity, "truncated": False,
    }  # fmt: skip


def ids(folder: Path) -> list[str | int]:
    """Return which documents of ROWS are in the index."""
    with mw.Index.open(folder / "news.mw") as index:
        return [row["id"] for row in ROWS if row["id"] in index]


def test_decisions_and_kept_lines(folder: Path) -> None:
    """In the order of the lines; kept lines are copied byte for byte, and are in the index."""
    data = json_lines(ROWS).replace(b'"id": ', b'"id" :  ')
    done = stream(folder, data, "-o", "new.jsonl")
    assert done.status == OK
    near = mw.compare(TRAIN, f"{TRAIN} a").similarity
    assert parse_json_lines(done.out) == [
        decision("d0", "added"),
        decision("d1", "added"),
        decision("d2", "duplicate", "d0", 1.0),
        decision("d3", "added"),
        decision("d4", "duplicate", "d1", near),
    ]
    lines = data.splitlines(keepends=True)
    assert (folder / "new.jsonl").read_bytes() == lines[0] + lines[1] + lines[3]
    assert done.err == "minwise: 5 read: 3 added, 2 near-duplicates left out; 3 in news.mw\n"
    assert ids(folder) == KEPT


def test_keeps_the_same_lines_as_dedup(folder: Path) -> None:
    """With the same seed, the same bytes, in any batches."""
    texts = documents(1500, seed=3)
    data = b"".join(json.dumps({"id": number, "text": text}).encode() + b"\n" for number, text in enumerate(texts))
    (folder / "stdin").write_bytes(data)
    expected = run(folder, "dedup", "-", "-o", "-", "--quiet", job=Job(stdin=str(folder / "stdin")))
    assert 0 < expected.out.count("\n") < len(texts)
    job = Job(stdin=str(folder / "stdin"), constants={"minwise.inputs.jsonl.MAX_LINES": 400})
    done = run(folder, "index", *UNIQUE, "-o", "-", "--quiet", job=job)
    assert (done.status, done.err) == (OK, "")
    assert done.out == expected.out


def test_repeated_input_gives_the_same_output(folder: Path) -> None:
    """They are unchanged, kept and copied again: a lost output can be restored."""
    first = stream(folder, json_lines(ROWS), "-o", "first.jsonl")
    again = stream(folder, json_lines(ROWS), "-o", "again.jsonl")
    assert [row["fate"] for row in parse_json_lines(first.out)].count("added") == 3
    fates = [row["fate"] for row in parse_json_lines(again.out)]
    assert fates == ["unchanged", "unchanged", "duplicate", "unchanged", "duplicate"]
    assert (folder / "again.jsonl").read_bytes() == (folder / "first.jsonl").read_bytes()


def test_decisions_before_the_input_ends(folder: Path) -> None:
    """A decision is printed before the next line is written; then other processes see the document."""
    first, second, third = json_lines(ROWS[:3]).splitlines(keepends=True)
    with running(folder, "index", *UNIQUE, "-o", "new.jsonl", "--quiet") as process:
        assert process.stdin
        process.stdin.write(first)
        assert json.loads(next_line(process))["fate"] == "added"
        assert (folder / "new.jsonl").read_bytes() == first
        with mw.Index.open(folder / "news.mw") as reader:
            assert "d0" in reader
            process.stdin.write(second[:30])
            process.stdin.write(second[30:])
            assert json.loads(next_line(process))["id"] == "d1"
            assert "d1" in reader
        process.stdin.write(third)
        assert json.loads(next_line(process))["duplicate_of"] == "d0"
        assert process.poll() is None
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out, err) == (OK, b"", b"")
    assert (folder / "new.jsonl").read_bytes() == first + second


def test_unreadable_lines_get_a_decision(folder: Path) -> None:
    """They get a decision in order, with the reason, and a line on standard error."""
    good = json_lines(ROWS[:1])
    done = stream(folder, good + b'{oops\n{"id": "x"}\n\n{"text": "no id"}\n' + json_lines(ROWS[1:2]))
    assert done.status == OK
    first, *bad, last = parse_json_lines(done.out)
    assert (first["id"], last["id"]) == ("d0", "d1")
    assert [(decided["fate"], decided["kept"], decided["row"]) for decided in bad] == [
        ("quarantined", False, row) for row in (1, 2, 3)
    ]
    assert [row["reason"].partition(":")[0] for row in bad] == [
        "line 2 is not JSON", "has no column 'text'", "needs an id",
    ]  # fmt: skip
    *reports, counts = done.err.splitlines()
    assert [line.startswith(f"minwise: standard input: row {row}: ") for row, line in enumerate(reports, 1)] == [
        True
    ] * 3
    assert counts == "minwise: 5 read: 2 added, 3 quarantined; 2 in news.mw"


def test_on_error(folder: Path) -> None:
    """`skip` prints a decision and a count; `fail` ends at the first fault, and adds nothing of its batch."""
    data = json_lines(ROWS[:1]) + b"{oops\n"
    skipped = stream(folder, data, "--on-error", "skip")
    assert [row["fate"] for row in parse_json_lines(skipped.out)] == ["added", "quarantined"]
    assert skipped.err.count("\n") == 1
    line = one_line(stream(folder, json_lines(ROWS[1:2]) + b"{oops\n", "--on-error", "fail"), FAILURE)
    assert "standard input: row 1: line 2 is not JSON" in line
    assert ids(folder) == ["d0"]


def test_kept_lines_on_standard_output(folder: Path) -> None:
    """`-o -` prints nothing else; counts are JSON on standard error."""
    done = stream(folder, json_lines(ROWS), "-o", "-", "--json")
    assert [row["id"] for row in parse_json_lines(done.out)] == KEPT
    counts = json.loads(done.err)
    assert (counts["read"], counts["added"], counts["duplicates"], counts["truncated"]) == (5, 3, 2, 0)
    assert counts["documents"] == 3


def test_taken_id(folder: Path) -> None:
    """It ends the stream, is skipped, or is replaced unless the new document is a near-duplicate of another."""
    assert stream(folder, json_lines(ROWS[:2])).status == OK
    other = json_lines([{"id": "d1", "text": "quite another text of seven words"}, {"id": "d0", "text": TRAIN}])
    assert "d1" in one_line(stream(folder, other), FAILURE)
    skipped = stream(folder, other, "--on-duplicate-id", "skip", "-o", "-")
    assert skipped.out == ""
    replaced = stream(folder, other, "--on-duplicate-id", "replace")
    assert [row["fate"] for row in parse_json_lines(replaced.out)] == ["replaced", "replaced"]
    with mw.Index.open(folder / "news.mw") as index:
        assert [hit.id for hit in index.query(TRAIN)] == ["d0"]
        assert list(index.query(FERRY)) == []


def test_metadata_of_a_stream_is_stored(folder: Path) -> None:
    """A column that the first lines do not have is refused."""
    assert stream(folder, json_lines(ROWS[:2]), "--metadata-column", "year").status == OK
    with mw.Index.open(folder / "news.mw") as index:
        assert index.get("d1").metadata == {"year": 1991}
    line = one_line(stream(folder, json_lines(ROWS[3:]), "--metadata-column", "yaer"), FAILURE)
    assert "standard input has no column 'yaer'; its columns are: id (string), text (string), year" in line
    assert "did you mean 'year'?" in line
    assert ids(folder) == ["d0", "d1"]


@pytest.mark.parametrize("name", ["more.parquet", "more.csv"])
def test_files_as_input(folder: Path, name: str) -> None:
    """The same decisions; kept rows are JSON lines of id, text and metadata."""
    write(folder / name, ROWS)
    done = run(
        folder, "index", "add", "news.mw", name, "--unique", "-o", "new.jsonl", "--metadata-column", "note",
        job=Job(constants={"minwise.index.ingest.BATCH_DOCUMENTS": 2}),
    )  # fmt: skip
    assert (done.status, done.err) == (OK, "minwise: 5 read: 3 added, 2 near-duplicates left out; 3 in news.mw\n")
    assert [(row["id"], row["duplicate_of"]) for row in parse_json_lines(done.out)] == [
        ("d0", None), ("d1", None), ("d2", "d0"), ("d3", None), ("d4", "d1"),
    ]  # fmt: skip
    assert parse_json_lines((folder / "new.jsonl").read_text(encoding="utf-8")) == [
        {"id": row["id"], "text": row["text"], "metadata": {"note": row["note"]}} for row in ROWS if row["id"] in KEPT
    ]


def test_full_disk_of_the_output(folder: Path) -> None:
    """One line that names it; decided documents are in the index, and the command can be repeated."""
    assert "/dev/full: No space left on device" in one_line(
        stream(folder, json_lines(ROWS), "-o", "/dev/full"), INPUT_OUTPUT
    )
    assert ids(folder) == KEPT
    assert stream(folder, json_lines(ROWS), "-o", "new.jsonl").status == OK
    assert [row["id"] for row in parse_json_lines((folder / "new.jsonl").read_text())] == KEPT


@pytest.mark.parametrize("output", ["in.jsonl", "./in.jsonl", "corpus/new.jsonl", "other/pattern.jsonl", ""])
def test_output_that_is_also_input_is_refused(folder: Path, output: str) -> None:
    """Refused before anything is written: the input itself, in a directory, by a pattern."""
    write(folder / "corpus" / "a.jsonl", ROWS)
    write(folder / "other" / "pattern.jsonl", ROWS)
    inputs = ("in.jsonl", "corpus", "other/*.jsonl")
    line = one_line(run(folder, "index", "add", "news.mw", *inputs, "--unique", "-o", output), USAGE)
    assert "output must" in line
    assert (folder / "in.jsonl").read_bytes() == (folder / "other" / "pattern.jsonl").read_bytes() == json_lines(ROWS)
    assert ids(folder) == []


def test_output_in_a_missing_directory_adds_nothing(folder: Path) -> None:
    line = one_line(stream(folder, json_lines(ROWS), "-o", "nowhere/new.jsonl"), INPUT_OUTPUT)
    assert "nowhere" in line
    assert ids(folder) == []


def test_empty_input_gives_an_empty_output(folder: Path) -> None:
    done = stream(folder, b"\n\n", "-o", "new.jsonl", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")
    assert (folder / "new.jsonl").read_bytes() == b""


@pytest.mark.parametrize("fed", [0, 1], ids=["before any line", "after a line"])
def test_interrupt_while_waiting_for_input(folder: Path, fed: int) -> None:
    """Exit code 130 and one line; printed decisions are in the index."""
    with running(folder, "index", *UNIQUE) as process:
        assert process.stdin
        assert process.stderr
        if fed:
            process.stdin.write(json_lines(ROWS[:1]))
            assert json.loads(next_line(process))["id"] == "d0"
        else:
            wait_for_writer(folder, process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=DEADLINE_SECONDS) == INTERRUPTED
        assert process.stderr.read() == b"minwise: interrupted; run the same command again to continue\n"
    assert ids(folder) == ["d0"][:fed]


def wait_for_writer(folder: Path, process: int) -> None:
    """Wait until a process has opened the index, according to its lock file."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    lock = folder / "news.mw" / "writer.lock"
    while not lock.exists() or lock.read_text().strip() != str(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_resuming_after_an_interrupt(folder: Path) -> None:
    """The same command on the same lines gives the whole output."""
    lines = json_lines([{"id": number, "text": text} for number, text in enumerate(documents(300))])
    (folder / "stdin").write_bytes(lines)
    job = Job(stdin=str(folder / "stdin"), constants={"minwise.inputs.jsonl.MAX_LINES": 100})
    stopped = run(
        folder, "index", *UNIQUE, "-o", "new.jsonl",
        job=Job(stdin=job.stdin, constants=job.constants, stage_trap=("add", "stop")),
    )  # fmt: skip
    done = resume(stopped.child, signal.SIGINT)
    assert (done.status, done.err) == (INTERRUPTED, "minwise: interrupted; run the same command again to continue\n")
    assert done.out.count("\n") == 100
    assert run(folder, "index", *UNIQUE, "-o", "new.jsonl", "--overwrite", "--quiet", job=job).status == OK
    expected = run(folder, "dedup", "-", "-o", "-", "--quiet", job=job)
    assert (folder / "new.jsonl").read_text() == expected.out


def test_closed_standard_output(folder: Path) -> None:
    """`| head -1`: no traceback, no message, and the command ends although its input does not."""
    with running(folder, "index", *UNIQUE, "--quiet") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(json_lines(ROWS[:1]))
        next_line(process)
        process.stdout.close()
        deadline = time.monotonic() + DEADLINE_SECONDS
        number = 0
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(
                    json_lines([{"id": number, "text": f"number {number} of many that are never read"}])
                )
            number += 1
        assert process.returncode in (FAILURE, 128 + signal.SIGPIPE, -signal.SIGPIPE)
        assert process.stderr.read() == b""
    with mw.Index.open(folder / "news.mw") as index:
        assert index.verify() == []
        assert "d0" in index
