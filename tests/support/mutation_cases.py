"""Runs of the command and of the library on mutated files: inputs, work directories, indexes, outputs, stored arrays.

``python tests/support/mutation_cases.py --rounds 1000`` runs every target and prints a table of rounds and findings;
``--targets`` chooses some, ``--first`` the number of the first case. A case is determined by its target and number. A
worker process runs the cases; when a signal ends it, that is a finding, and the next case starts another worker. The
files of a finding are copied to a folder.
"""

import argparse
import bz2
import contextlib
import gzip
import io
import json
import os
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.commands import digest, without_stages
from support.fault_corpora import documents
from support.mutations import damage, mutate, mutate_json, mutate_json_lines, mutate_table
from support.small_corpus import delimited, json_lines, zstd

__all__ = ["TARGETS", "Finding", "Worker", "run_target"]

# Longest time of a case. A case takes less than a second; it is long because machines may be loaded.
CASE_SECONDS = 120
# Address space of a worker: a length that damage made huge must not exhaust the machine.
WORKER_BYTES = 8 << 30
EXIT_CODES = {0, 1, 2, 74}
POLICIES = ("fail", "quarantine-rows", "quarantine", "skip")


class BrokenPromiseError(AssertionError):
    """A promise that a run did not keep."""


@dataclass(frozen=True)
class Target:
    """Something to mutate.

    Attributes:
        name: Name of the target.
        prepare: Writes the intact files to an empty folder, once per worker.
        run: Runs a case in a folder, given the intact files and the random numbers of the case.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, Path, random.Random], None]


@dataclass(frozen=True)
class Finding:
    """A case that broke a promise.

    Attributes:
        target: Name of the target.
        number: Number of the case.
        reason: What happened.
    """

    target: str
    number: int
    reason: str


# Runs of the command in this process.


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    status: int
    out: str
    err: str


def command(folder: Path, *arguments: str, stdin: Path | None = None) -> Outcome:
    """Run the command in a folder and check its exit code and messages."""
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    with redirected(folder, stdin, out, err):
        status = call(arguments)
    done = Outcome(status, out.read_text("utf-8", "replace"), without_stages(err.read_text("utf-8", "replace")))
    for path in (out, err):
        path.unlink()
    check_outcome(arguments, done)
    return done


def call(arguments: tuple[str, ...]) -> int:
    """Call the entry function of the command; return its exit code."""
    from minwise.cli import main

    sys.argv = ["minwise", *arguments]
    try:
        main()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


@contextlib.contextmanager
def redirected(folder: Path, stdin: Path | None, out: Path, err: Path) -> Iterator[None]:
    """Make the standard streams files and the folder the current one."""
    saved, previous = [os.dup(number) for number in range(3)], Path.cwd()
    paths = ((stdin or Path(os.devnull), os.O_RDONLY), (out, os.O_WRONLY | os.O_CREAT), (err, os.O_WRONLY | os.O_CREAT))
    for number, (path, flags) in enumerate(paths):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(previous)
        for number, file in enumerate(saved):
            os.dup2(file, number)
            os.close(file)


def check_outcome(arguments: tuple[str, ...], done: Outcome) -> None:
    """Check that a run ended with a documented exit code, that every line of a failure is one of the command's."""
    shown = f"{' '.join(arguments)}: exit {done.status}: {done.err[-300:]!r}"
    if done.status not in EXIT_CODES:
        raise BrokenPromiseError(f"undocumented exit code: {shown}")
    if any(word in done.err for word in ("Traceback", "panicked", "Warning:", "a bug in minwise")):
        raise BrokenPromiseError(f"raw error: {shown}")
    start = ("minwise: ", '{"error": ') if "--json" in arguments else "minwise: "
    if done.status and not (done.err and all(line.startswith(start) for line in done.err.splitlines())):
        raise BrokenPromiseError(f"a failure must print one line: {shown}")


def library(call: Callable[[], object]) -> object:
    """Call the library; errors must be MinwiseError or OSError with a message of one line."""
    from minwise import MinwiseError

    try:
        return call()
    except (MinwiseError, OSError) as error:
        if not str(error) or "\n" in str(error):
            raise BrokenPromiseError(f"a message must be one line: {error!r}") from None
        return None


# Inputs.


def rows(count: int = 30) -> list[dict[str, Any]]:
    """Return rows of which some are near-duplicates, with columns of several types."""
    texts = documents(count, seed=3)
    notes = ("", 'a "b"', "c, ü漢")
    return [
        {"id": f"d{number}", "text": f"{text} ü漢", "year": 1900 + number, "note": notes[number % 3]}
        for number, text in enumerate(texts)
    ]


def plain(form: str) -> bytes:
    """Return the rows in a textual format."""
    if form in ("csv", "tsv"):
        return delimited(rows(), "\t" if form == "tsv" else ",")
    if form == "json":
        return json.dumps(rows(), indent=1).encode()
    if form == "html":
        paragraphs = "".join(f"<div class=a{n}><p>{row['text']}<br>&amp;</p></div>\n" for n, row in enumerate(rows()))
        head = "<head><title>t</title><style>p {}</style></head>"
        return f"<!doctype html><html>{head}<body>{paragraphs}</body></html>".encode()
    if form == "baskets":
        return "".join(" ".join(row["text"].split()[:12]) + "\n" for row in rows()).encode()
    return json_lines(rows()) if form == "jsonl" else "\n".join(row["text"] for row in rows()).encode()


def columnar(form: str) -> bytes:
    """Return the rows in a columnar format, with columns of many types and several batches."""
    table = pa.Table.from_pylist(rows())
    stamps = pa.array(range(len(table)), pa.timestamp("us", tz="UTC"))
    table = table.append_column("when", stamps).append_column("kind", table["note"].dictionary_encode())
    table = table.append_column("tags", pa.array([[row["id"], None] for row in rows()]))
    table = table.append_column("nested", pa.array([{"a": {"b": row["year"]}} for row in rows()]))
    sink = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, sink, row_group_size=10, data_page_size=256, write_page_checksum=True)
    else:
        new_writer = pa.ipc.new_stream if form == "arrows" else pa.ipc.new_file
        with new_writer(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=10):
                writer.write_batch(batch)
    return sink.getvalue()


COLUMNAR = ("parquet", "arrow", "arrows", "feather")
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd,
}  # fmt: skip
NAMES = (
    "in.jsonl", "in.json", "in.csv", "in.tsv", "in.txt", "in.html", "in.baskets", "in.parquet", "in.arrow",
    "in.arrows", "in.feather", "in.jsonl.gz", "in.jsonl.bz2", "in.jsonl.zst", "in.csv.gz",
    "in.csv.zst", "in.txt.gz", "in.json.gz",
)  # fmt: skip


@cache
def intact(name: str) -> bytes:
    """Return the content of an input before its compression."""
    form = name.split(".")[1]
    return columnar(form) if form in COLUMNAR else plain(form)


def mutated_content(name: str, draw: random.Random) -> bytes:
    """Return a mutated input: changed in its own structure, or as bytes, before or after its compression."""
    form, _, packing = name.removeprefix("in.").partition(".")
    compress = COMPRESSIONS[f".{packing}" if packing else ""]
    content = intact(name)
    structured = draw.random() < 0.4
    if structured and form == "jsonl":
        return compress(mutate_json_lines(content, draw))
    if structured and form == "json":
        return compress(mutate_json(json.loads(content), draw).encode())
    if structured and form in ("csv", "tsv"):
        return compress(mutate_table(content, draw))
    if structured and form in COLUMNAR:
        return damage(content, draw)
    donor = draw.choice([intact(other) for other in NAMES[:11]])
    if packing and draw.random() < 0.6:
        return mutate(compress(content), draw, donor)
    return compress(mutate(content, draw, donor))


def input_options(name: str, draw: random.Random) -> list[str]:
    """Return settings that read an input in different ways."""
    options = ["--on-error", draw.choice(POLICIES), "--threads", draw.choice("12")]
    if ".baskets" in name:
        return [*options, "--format", "baskets"]
    if ".arrows" in name:
        options += ["--format", "arrow"]
    if ".html" in name or draw.random() < 0.05:
        options.append("--html")
    if ".txt" in name and draw.random() < 0.5:
        options += ["--format", "lines"]
    choices: tuple[list[str], ...] = (
        [], [], [], ["--exact"], ["--keep", "longest"], ["--shingle", "char:5"], ["--memory", "256MB"],
        ["--text-column", "note"], ["--id-column", "year"],
    )  # fmt: skip
    return [*options, *draw.choice(choices)]


def run_input(name: str) -> Callable[[Path, Path, random.Random], None]:
    """Return the function that runs a case of an input."""

    def run(folder: Path, original: Path, draw: random.Random) -> None:
        path = folder / name
        path.write_bytes(mutated_content(name, draw))
        options, kind = input_options(name, draw), draw.random()
        if kind < 0.7:
            check_dedup(folder, name, options)
        elif kind < 0.8:
            command(folder, draw.choice(("pairs", "clusters")), name, "-o", "found.jsonl", *options)
        elif kind < 0.9:
            check_library(path, options)
        else:
            command(folder, "dedup", "-", "-o", "-", *options, *format_of(name, options), stdin=path)
        check_leftovers(folder)

    return run


def format_of(name: str, options: list[str]) -> list[str]:
    """Return the option that names the format, for standard input, if there is none."""
    form = name.split(".")[1]
    known = {"txt": "text", "html": "text", "feather": "arrow"}
    return [] if "--format" in options else ["--format", known.get(form, form)]


def check_dedup(folder: Path, name: str, options: list[str]) -> None:
    """Deduplicate an input and check the counts of the result."""
    done = command(folder, "dedup", name, "-o", "out", *options)
    if done.status:
        if (folder / "out").exists():
            raise BrokenPromiseError(f"exit {done.status}, but there is an output")
        return
    counts = json.loads((folder / "out" / "report.json").read_text("utf-8"))["counts"]
    if counts["read"] != counts["kept"] + counts["removed"] + counts["quarantined"]:
        raise BrokenPromiseError(f"read = kept + removed + quarantined does not hold: {counts}")
    if counts["removed"] != pq.read_metadata(folder / "out" / "removed.parquet").num_rows:
        raise BrokenPromiseError(f"removed.parquet has other rows: {counts}")
    kept = kept_rows(folder / "out" / "kept" / name)
    if kept is not None and kept != counts["kept"]:
        raise BrokenPromiseError(f"kept has {kept} rows: {counts}")


def kept_rows(path: Path) -> int | None:
    """Return the number of kept rows of a file whose rows are easy to count."""
    if path.name.endswith(".parquet"):
        return int(pq.read_metadata(path).num_rows) if path.exists() else 0
    if path.name.endswith((".arrow", ".feather")):
        return int(pa.ipc.open_file(path.read_bytes()).read_all().num_rows) if path.exists() else 0
    if path.name.endswith(".jsonl"):
        return sum(bool(line.strip()) for line in path.read_bytes().split(b"\n")) if path.exists() else 0
    return None


def check_library(path: Path, options: list[str]) -> None:
    """Find pairs with the library."""
    import minwise

    policy: Any = options[options.index("--on-error") + 1]
    library(lambda: minwise.pairs(str(path), on_error=policy))


def check_leftovers(folder: Path) -> None:
    """Check that a run leaves no temporary files."""
    left = [path.name for path in folder.iterdir() if path.name.startswith(".minwise")]
    if left:
        raise BrokenPromiseError(f"left behind: {left}")


def no_files(folder: Path) -> None:
    """Prepare nothing."""


# Vectors.


def vector_bytes(name: str) -> bytes:
    """Return vectors of which some are near each other."""
    generator = np.random.default_rng(4)
    vectors = generator.normal(size=(20, 6)).astype(np.float32)
    vectors[10:] = vectors[:10] + np.float32(0.01)
    sink = io.BytesIO()
    if name.endswith(".npy"):
        np.save(sink, vectors)
    else:
        pq.write_table(pa.table({"embedding": list(vectors), "id": list(range(20))}), sink, row_group_size=5)
    return sink.getvalue()


def run_vectors(name: str) -> Callable[[Path, Path, random.Random], None]:
    """Return the function that runs a case of a file of vectors."""

    def run(folder: Path, original: Path, draw: random.Random) -> None:
        change = draw.choice((mutate, damage))
        (folder / name).write_bytes(change(vector_bytes(name), draw))
        command(
            folder, "vectors", "pairs", name, "--radius", "0.5", "-o", "p.jsonl", "--on-error", draw.choice(POLICIES)
        )
        check_leftovers(folder)

    return run


# Outputs, work directories and indexes: a copy of an intact directory with one file mutated.


def write_inputs(folder: Path) -> None:
    """Write the inputs of the runs below."""
    (folder / "a.jsonl").write_bytes(json_lines(rows()[:20]) + b"no JSON\n")
    pq.write_table(pa.Table.from_pylist(rows()[15:]), folder / "b.parquet")


DEDUP = ("dedup", "a.jsonl", "b.parquet", "-o", "out")


def mutate_one(folder: Path, draw: random.Random) -> str:
    """Mutate one file below a folder; return its name."""
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("report.html", "index.db-shm")
    )
    path = draw.choice(paths)
    data = path.read_bytes()
    if path.suffix in (".json", ".jsonl") and draw.random() < 0.6:
        changed = (
            mutate_json_lines(data, draw) if path.suffix == ".jsonl" else mutate_json(json.loads(data), draw).encode()
        )
    else:
        changed = mutate(data, draw, draw.choice(paths).read_bytes())
    path.write_bytes(changed)
    return path.name


def prepare_output(folder: Path) -> None:
    """Write inputs and the output of a run."""
    write_inputs(folder)
    assert command(folder, *DEDUP).status == 0


def run_output(folder: Path, original: Path, draw: random.Random) -> None:
    """Run the commands that read an output."""
    shutil.copytree(original, folder, dirs_exist_ok=True)
    mutate_one(folder / "out", draw)
    commands: tuple[tuple[str, ...], ...] = (
        ("report", "out"), ("report", "out", "--json"), ("explain", "out", "d4"),
        ("explain", "out", "a.jsonl:3", "--json"), ("explain", "out", "d17", "--search"),
        ("restore", "out", "--all", "-o", "restored"), ("restore", "out", "--ids", "ids.txt", "-o", "restored"),
        ("rethreshold", "out", "--threshold", "0.9", "-o", "again"),
    )  # fmt: skip
    (folder / "ids.txt").write_text("d17\nd19\n", encoding="utf-8")
    command(folder, *draw.choice(commands))
    check_leftovers(folder)


def prepare_work(folder: Path) -> None:
    """Write inputs and a finished run with its work directory."""
    write_inputs(folder)
    assert command(folder, *DEDUP, "--work", "work").status == 0


def run_work(folder: Path, original: Path, draw: random.Random) -> None:
    """Continue a run whose work directory is damaged: the result is the same, or there is none."""
    shutil.copytree(original, folder, dirs_exist_ok=True)
    expected = comparable(folder / "out")
    shutil.rmtree(folder / "out")
    for stage in ("publishing", "verified", "sets"):  # as if the run had ended in an earlier stage
        if draw.random() < 0.5:
            break
        (folder / "work" / stage).unlink(missing_ok=True)
    name = mutate_one(folder / "work", draw)
    done = command(folder, *DEDUP, "--work", "work")
    if done.status == 0 and comparable(folder / "out") != expected:
        raise BrokenPromiseError(f"another result after damage of {name}")


def comparable(folder: Path) -> dict[str, str]:
    """Return the digests of an output without the files that hold times and whether the run was resumed."""
    return {name: value for name, value in digest(folder).items() if name not in ("run.json", "report.html")}


def prepare_index(folder: Path) -> None:
    """Write an index with segments, recent and removed documents, and the answer to a query."""
    import minwise

    write_inputs(folder)
    with minwise.Index.create(folder / "i.mw", threshold=0.7, seed=5) as index:
        for part in range(3):
            some = rows(60)[part * 20 : part * 20 + 20]
            index.add([row["id"] for row in some], [row["text"] for row in some])
            index.remove([some[3]["id"]])
            if part < 2:
                index.flush()
    answer = command(folder, "index", "query", "i.mw", "a.jsonl", "--top", "5")
    assert answer.status == 0
    (folder / "answer").write_text(answer.out, encoding="utf-8")


def run_index(folder: Path, original: Path, draw: random.Random) -> None:
    """Use a damaged index: a query gives the right answer or fails."""
    shutil.copytree(original, folder, dirs_exist_ok=True)
    if draw.random() < 0.5:
        change_record(folder / "i.mw" / "index.db", draw)
    else:
        mutate_one(folder / "i.mw", draw)
    query = command(folder, "index", "query", "i.mw", "a.jsonl", "--top", "5")
    if query.status == 0 and query.out != (original / "answer").read_text("utf-8"):
        raise BrokenPromiseError("another answer of a damaged index")
    commands: tuple[tuple[str, ...], ...] = (
        ("index", "verify", "i.mw"), ("index", "stats", "i.mw"),
        ("index", "add", "i.mw", "b.parquet", "--on-error", "skip"), ("index", "remove", "i.mw", "d1"),
        ("index", "compact", "i.mw"), ("index", "export", "i.mw", "e.parquet"),
        ("index", "backup", "i.mw", "copy.mw"),
    )  # fmt: skip
    command(folder, *draw.choice(commands))


def change_record(database: Path, draw: random.Random) -> None:
    """Change a record of the index by SQL, so that the pages of the database stay intact."""
    with contextlib.closing(apsw.Connection(str(database))) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        stored = [
            (table, *row) for table in tables for row in connection.execute(f"SELECT number, record FROM {table}")
        ]
        (table, number, record), other = draw.choice(stored), draw.choice(stored)
        changed = draw.choice((mutate(record, draw, other[2]), other[2]))
        connection.execute(f"UPDATE {table} SET record = ? WHERE number = ?", (changed, number))


# Files of arrays.


def prepare_signatures(folder: Path) -> None:
    """Write a file of signatures."""
    import minwise

    sets = minwise.ShingleSets.from_sets([range(number, number + 40) for number in range(30)])
    minwise.FastSketch(slots=64).sketch(sets).save(folder / "s.mws")


def run_signatures(folder: Path, original: Path, draw: random.Random) -> None:
    """Load a mutated file of signatures: an error, or the signatures that were saved."""
    from minwise.sketches import Signatures

    data = (original / "s.mws").read_bytes()
    path = folder / "s.mws"
    reframed = draw.random() < 0.5
    path.write_bytes(with_header(data, draw) if reframed else mutate(data, draw))
    loaded = library(lambda: Signatures.load(path))
    if isinstance(loaded, Signatures) and not reframed:
        saved = Signatures.load(original / "s.mws")
        if path.read_bytes() != data and not np.array_equal(loaded.slots, saved.slots):
            raise BrokenPromiseError("other signatures were loaded from a damaged file")


def with_header(data: bytes, draw: random.Random) -> bytes:
    """Return an array file with a changed header and the right checksum of it."""
    from minwise import _kernel

    version, length = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
    header = mutate_json(json.loads(data[20 : 20 + length]), draw).encode("utf-8", "replace")[:length].ljust(length)
    prefix = version.to_bytes(4, "little") + length.to_bytes(4, "little")
    crc = _kernel.crc32c(np.frombuffer(prefix + header, np.uint8), 0)
    return data[:8] + prefix + crc.to_bytes(4, "little") + header + data[20 + length :]


# Settings files.

SETTINGS = b"""[dedup]
threshold = 0.7
shingle = "word:3"
text_column = ["text"]
memory = "1GB"
keep = "longest"
html = false
"""


def run_settings(folder: Path, original: Path, draw: random.Random) -> None:
    """Run with a mutated settings file."""
    (folder / "a.jsonl").write_bytes(json_lines(rows()[:10]))
    (folder / "minwise.toml").write_bytes(mutate(SETTINGS, draw))
    command(folder, "dedup", "a.jsonl", "-o", "out")


TARGETS = {
    target.name: target
    for target in (
        *(Target(name.removeprefix("in."), no_files, run_input(name)) for name in NAMES),
        *(Target(f"vectors.{form}", no_files, run_vectors(f"in.{form}")) for form in ("npy", "parquet")),
        Target("output directory", prepare_output, run_output),
        Target("work directory", prepare_work, run_work),
        Target("index", prepare_index, run_index),
        Target("signature file", prepare_signatures, run_signatures),
        Target("settings file", no_files, run_settings),
    )
}


# The worker process and its client.


def serve() -> None:
    """Run the cases that standard input names, one JSON line each; reply with null or the reason of a finding."""
    resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="minwise-mutations-") as parent:
        originals: dict[str, Path] = {}
        for line in requests:
            request = json.loads(line)
            target = TARGETS[request["target"]]
            if target.name not in originals:
                originals[target.name] = Path(parent, target.name)
                originals[target.name].mkdir()
                target.prepare(originals[target.name])
            replies.write(json.dumps(attempt(target, originals[target.name], request)) + "\n")
            replies.flush()


def attempt(target: Target, original: Path, request: dict[str, Any]) -> str | None:
    """Run a case; return the reason if it is a finding."""
    draw = random.Random(f"{target.name} {request['number']}")
    try:
        target.run(Path(request["folder"]), original, draw)
    except BrokenPromiseError as error:
        return str(error)
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        return "raw exception: " + " | ".join([lines[-1], *(line.strip() for line in lines[-7:-1])])
    return None


class Worker:
    """Client of the worker process, which starts again after it has died."""

    def __init__(self, findings: Path) -> None:
        self._findings = findings
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin
        assert process.stdout
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        return process.wait(timeout=CASE_SECONDS)

    def run(self, target: str, number: int) -> Finding | None:
        """Run a case; copy its files if it is a finding."""
        memory = Path("/dev/shm")
        parent = memory if os.access(memory, os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="minwise-case-", dir=parent) as folder:
            reason = self._ask({"target": target, "number": number, "folder": folder})
            if reason is None:
                return None
            kept = self._findings / f"{target.replace(' ', '-')}-{number}"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            (kept / "reason.txt").write_text(f"{reason}\n", encoding="utf-8")
        return Finding(target, number, reason)

    def _ask(self, request: dict[str, Any]) -> str | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
            )
        process = self._process
        assert process.stdin
        assert process.stdout
        with contextlib.suppress(BrokenPipeError):  # it has ended since the last case; there is no reply
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], CASE_SECONDS)[0]:
            process.kill()
            self._stop()
            return f"no end after {CASE_SECONDS} s"
        reply = process.stdout.readline()
        if not reply:
            return f"the process ended: exit code {self._stop()}"
        found: str | None = json.loads(reply)
        return found


def environment() -> dict[str, str]:
    """Return the environment of a worker: helpers of tests can be imported, and small cases do not wait for threads."""
    folders = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    threads = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def run_target(worker: Worker, target: str, numbers: range) -> list[Finding]:
    """Run cases of a target; return the findings."""
    return [finding for number in numbers if (finding := worker.run(target, number)) is not None]


def main() -> None:
    """Run cases of all targets and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--findings", type=Path, default=Path("target/mutations"))
    given = parser.parse_args()
    if given.serve:
        return serve()
    started, total = time.monotonic(), 0
    with Worker(given.findings) as worker:
        for target in given.targets:
            found = run_target(worker, target, range(given.first, given.first + given.rounds))
            total += len(found)
            say(f"{target:18} {given.rounds:7,} rounds {len(found):5,} findings")
            for finding in found[:5]:
                say(f"    {finding.number}: {finding.reason[:300]}")
    say(
        f"{len(given.targets)} targets, {given.rounds * len(given.targets):,} rounds, {total:,} findings"
        f" in {time.monotonic() - started:,.0f} s; files of findings in {given.findings}"
    )
    sys.exit(total > 0)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
