"""`minwise dedup - -o -` in a pipe: the kept lines of a batch run, each written as soon as it is decided."""

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.commands import FAILURE, INTERRUPTED, MINWISE, OK, USAGE, Done, Job, execute, hidden, one_line, run
from support.fault_corpora import documents
from support.piped import DEADLINE_SECONDS, next_line, running

STREAM = ("dedup", "-", "-o", "-")


def lines_of(texts: list[str]) -> list[bytes]:
    """Return texts as JSON lines, with different spacing."""
    lines = [json.dumps({"id": number, "text": text}).encode() + b"\n" for number, text in enumerate(texts)]
    return [line.replace(b'": ', b'" :  ') if number % 3 else line for number, line in enumerate(lines)]


def stream(folder: Path, data: bytes, *options: str) -> Done:
    """Run the command with its input in a file, which is fast."""
    (folder / "stdin").write_bytes(data)
    return run(folder, *STREAM, *options, job=Job(stdin=str(folder / "stdin")))


def test_kept_lines_are_those_of_a_batch_run(tmp_path: Path) -> None:
    """Byte for byte, with the counts on standard error."""
    lines = lines_of(documents(3000, seed=3))
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    assert run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--quiet").status == OK
    kept = (tmp_path / "out" / "kept" / "in.jsonl").read_bytes()
    stay = kept.count(b"\n")
    assert 0 < stay < len(lines)
    done = execute(tmp_path, *STREAM, stdin=b"".join(lines))
    assert done.returncode == OK
    assert done.stdout == kept
    counts = f"{len(lines):,} read, {stay:,} kept, {len(lines) - stay:,} removed, 0 quarantined, 0 capped"
    assert done.stderr.decode() == f"minwise: {counts}\n"


def test_kept_lines_do_not_depend_on_how_the_input_is_cut(tmp_path: Path) -> None:
    lines = lines_of(documents(800, seed=4))
    data = b"".join(lines)
    whole = stream(tmp_path, data, "--quiet")
    with running(tmp_path, *STREAM, "--quiet", "--memory", "256MB", "--threads", "1") as process:
        assert process.stdin
        assert process.stdout
        with ThreadPoolExecutor() as reader:  # the kept lines exceed the pipe buffer: they must be read meanwhile
            kept = reader.submit(process.stdout.read)
            for start in range(0, len(data), 7919):
                process.stdin.write(data[start : start + 7919])
            process.stdin.close()
            assert kept.result(timeout=60) == whole.out.encode()
        assert process.wait(timeout=60) == OK


def test_each_line_is_written_before_the_next_is_read(tmp_path: Path) -> None:
    """A duplicate is not written."""
    first, second, third = lines_of(["one two three four five six seven", "eight nine ten eleven twelve", "once more"])
    with running(tmp_path, *STREAM, "--quiet") as process:
        assert process.stdin
        process.stdin.write(first)
        assert next_line(process) == first
        process.stdin.write(first + second)
        assert next_line(process) == second
        process.stdin.write(third[:9])
        process.stdin.write(third[9:])
        assert next_line(process) == third
        assert process.poll() is None
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out, err) == (OK, b"", b"")


def test_each_faulty_line_is_reported_with_row_and_reason(tmp_path: Path) -> None:
    good, other = lines_of(["one two three four five six", "seven eight nine ten eleven twelve"])
    bad = [b"{oops\n", b'{"text": null}\n', b'{"text": 5}\n', b'{"id": 1}\n', b'{"text": "\xff"}\n', b"[]\n"]
    done = stream(tmp_path, b"".join([good, *bad, b"\n", other]))
    assert (done.status, done.out) == (OK, (good + other).decode())
    *reports, counts = done.err.splitlines()
    reasons = [
        "not JSON", "text is null", "must be a string, got int", "no column 'text'", "not valid UTF-8", "got list",
    ]  # fmt: skip
    for row, (line, reason) in enumerate(zip(reports, reasons, strict=True), 1):
        assert line.startswith(f"minwise: standard input: row {row}: ")
        assert reason in line
    assert counts == "minwise: 8 read, 2 kept, 0 removed, 6 quarantined, 0 capped"


def test_on_error_skip_counts_faulty_lines_and_fail_ends_at_the_first(tmp_path: Path) -> None:
    good, later = lines_of(["one two three four five six", "seven eight nine ten"])
    data = good + b"{oops\n" + later
    skipped = stream(tmp_path, data, "--on-error", "skip")
    assert (skipped.status, skipped.out) == (OK, (good + later).decode())
    assert skipped.err.count("\n") == 1
    failed = stream(tmp_path, data, "--on-error", "fail")
    assert failed.status == FAILURE
    assert failed.err.count("\n") == 1
    assert "row 1" in failed.err
    assert later.decode() not in failed.out


def test_json_counts_are_written_to_standard_error(tmp_path: Path) -> None:
    line = lines_of(["one two three four five six"])[0]
    done = stream(tmp_path, line * 3, "--json")
    assert done.out == line.decode()
    counts = {"read": 3, "kept": 1, "removed": 2, "quarantined": 0, "capped": 0}
    assert json.loads(done.err) == counts


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_empty_input_gives_empty_output(tmp_path: Path, data: bytes) -> None:
    done = stream(tmp_path, data, "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


def test_a_last_line_without_a_line_feed_gets_one(tmp_path: Path) -> None:
    line = lines_of(["one two three four five six"])[0]
    done = stream(tmp_path, line.rstrip(b"\n"), "--quiet")
    assert (done.status, done.out) == (OK, line.decode())


def test_a_closed_output_ends_the_command_silently(tmp_path: Path) -> None:
    """As with `| head -1`, although the input continues."""
    (line,) = lines_of(["one two three four five six"])
    with running(tmp_path, *STREAM, "--quiet") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(line)
        assert next_line(process) == line
        process.stdout.close()
        deadline = time.monotonic() + DEADLINE_SECONDS
        number = 0
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps({"text": f"number {number} of many unread lines"}).encode() + b"\n")
            number += 1
        assert process.returncode in (FAILURE, 128 + signal.SIGPIPE, -signal.SIGPIPE)
        assert process.stderr.read() == b""


@pytest.mark.parametrize("fed", [0, 1], ids=["before any line", "after a line"])
def test_an_interrupt_ends_with_130_and_leaves_no_temporary_files(tmp_path: Path, fed: int) -> None:
    (line,) = lines_of(["one two three four five six"])
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        [MINWISE, *STREAM], cwd=tmp_path, env=environment, bufsize=0,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        if fed:
            process.stdin.write(line)
            assert next_line(process) == line
        else:
            wait_for(lambda: any((tmp_path / "tmp").glob("*/*")))  # the shingles of kept lines
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=DEADLINE_SECONDS) == INTERRUPTED
        assert process.stderr
        assert process.stdout
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"minwise: interrupted\n")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert hidden(tmp_path) == []


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--keep", "longest"], "keep"),
        (["--group", "components"], "group"),
        (["--verify", "signature"], "verify"),
        (["--work", "work"], "work"),
        (["--against", "old.jsonl"], "against"),
        (["--memory", "1MB"], "memory"),
    ],
)
def test_settings_that_a_stream_does_not_support_are_rejected(tmp_path: Path, options: list[str], name: str) -> None:
    """Exit code 2 and one line, before anything is read."""
    assert name in one_line(run(tmp_path, *STREAM, *options), USAGE)
    assert list(tmp_path.iterdir()) == []


def resident_bytes(process: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_grows_with_kept_lines_only(tmp_path: Path) -> None:
    """200,000 lines, of which 20,000 are kept."""
    rest = "and so on " * 18
    kept = [f"line {number} has {number * 7} words and {number % 97} of its own {rest}" for number in range(20_000)]
    block = b"".join(lines_of([f"{number} {number * 31} {text}" for number, text in enumerate(kept)]))
    mark = b'{"text": "the %d. mark tells how far it has come by now"}\n'
    with running(tmp_path, *STREAM, "--quiet", "--threshold", "0.9") as process:
        assert process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        sizes = []
        for repeat in range(10):
            feed(process, block + mark % repeat)
            sizes.append(resident_bytes(process.pid))
        process.communicate(timeout=60)
    assert process.returncode == OK
    # 26 band keys of 8 bytes with their table, a content hash and a number: far below two kilobytes per kept line.
    assert sizes[0] < 250 * 10**6 + 20_000 * 2048
    # Nine more times the same lines: holding removed lines would take the same memory each time.
    assert len(block) > 5 * 10**6
    assert sizes[-1] - sizes[1] < 3 * len(block), sizes


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write data and read output until the last line of the data, which is kept, has come out."""
    assert process.stdin
    assert process.stdout
    waiting, tail = memoryview(data), b""
    last = data.splitlines(keepends=True)[-1]
    deadline = time.monotonic() + 120
    while not tail.endswith(last):
        assert time.monotonic() < deadline
        readable, writable, _ = select.select([process.stdout], [process.stdin] if waiting else [], [], 1)
        if readable:
            tail = (tail + os.read(process.stdout.fileno(), 1 << 20))[-len(last) :]
        if writable:
            waiting = waiting[os.write(process.stdin.fileno(), waiting[: 1 << 16]) :]
