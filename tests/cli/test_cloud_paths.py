"""Inputs, outputs and work directories at URLs: a real S3 server process, and the hub's driver with a local hub."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Job, digest, one_line, run
from support.hub_server import hub_server
from support.s3_server import s3_server

COLOURS = ("red", "green", "blue", "white", "black")
# Small sizes, so that a small run has several parts and chunks.
SMALL_SIZES = {"minwise.search.first_pass.PART_DOCUMENTS": 40, "minwise.search.candidates.CHUNK_PAIRS": 10}


def lines(file: int) -> bytes:
    """Return 60 rows: every third text is repeated with another last word."""
    rows = [
        {
            "id": f"{file}-{row}",
            "text": f"ship {row - row % 3} of fleet {file} left the harbour with a {COLOURS[row % 3]} flag"
            " and came back before the evening bell with fish, salt, ropes and letters for everyone in town",
        }
        for row in range(60)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Start an S3 server; return the variables that lead to it."""
    with s3_server() as variables:
        yield variables


@pytest.fixture
def bucket(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[fsspec.AbstractFileSystem]:
    """Return the file system with a new bucket named data, which holds three files of JSON lines."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
    filesystem.mkdir("data")
    for number in range(3):
        filesystem.pipe_file(f"data/in/part-{number}.jsonl", lines(number))
    yield filesystem
    filesystem.rm("data", recursive=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with the same files in ``in``."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / f"in/part-{number}.jsonl").write_bytes(lines(number))
    return tmp_path


def kept(folder: Path) -> dict[str, str]:
    """Return the digests of kept rows."""
    return {name: value for name, value in digest(folder).items() if name.startswith("kept/")}


def test_s3_input_and_output_give_the_rows_of_local_files(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    assert run(folder, "dedup", "in", "-o", "local", "--quiet").status == OK
    for given in ("s3://data/in", "s3://data/in/*.jsonl"):
        done = run(folder, "dedup", given, "-o", "s3://data/out", "--overwrite", job=Job(environment=environment))
        assert done.status == OK, done.err
        assert "kept rows in s3://data/out/kept" in done.out
        bucket.invalidate_cache()
        shutil.rmtree(folder / "fetched", ignore_errors=True)
        bucket.get("data/out", str(folder / "fetched"), recursive=True)
        assert kept(folder / "fetched") == kept(folder / "local")
        assert not bucket.exists("data/out/_unfinished")


def test_a_table_of_pairs_can_be_written_to_s3(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    job = Job(environment=environment)
    assert run(folder, "pairs", "s3://data/in", "-o", "s3://data/pairs.jsonl", "--quiet", job=job).status == OK
    assert run(folder, "pairs", "in", "-o", "pairs.jsonl", "--quiet").status == OK
    assert bucket.cat_file("data/pairs.jsonl") == (folder / "pairs.jsonl").read_bytes()


@pytest.mark.parametrize("stage", ["read and sketch", "verify"])
def test_a_killed_run_resumes_from_a_work_directory_at_s3(
    stage: str, bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    """The second run finds the files of the first, and the output is that of a run without interruption."""
    arguments = ("dedup", "s3://data/in", "-o", "out", "--work", "s3://data/state", "--memory", "256MB")
    killed = run(
        folder,
        *arguments,
        job=Job(environment=environment, constants=SMALL_SIZES, stage_trap=(stage, "kill")),
    )
    assert killed.status == -9
    assert bucket.exists("data/state/manifest.json")
    again = run(folder, *arguments, job=Job(environment=environment, constants=SMALL_SIZES))
    assert again.status == OK, again.err
    assert json.loads((folder / "out/run.json").read_text())["resumed"]
    assert run(folder, "dedup", "s3://data/in", "-o", "whole", job=Job(environment=environment)).status == OK
    names = ("report.json", "removed.parquet", "clusters.parquet")
    assert [digest(folder / "out")[name] for name in names] == [digest(folder / "whole")[name] for name in names]
    assert kept(folder / "out") == kept(folder / "whole")


def test_a_finished_run_at_s3_is_not_done_again(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    arguments = ("dedup", "s3://data/in", "-o", "s3://data/out", "--work", "s3://data/state")
    job = Job(environment=environment)
    assert run(folder, *arguments, job=job).status == OK
    assert "already published" in run(folder, *arguments, job=job).out
    other = run(folder, *arguments, "--threshold", "0.7", job=job)
    assert "work s3://data/state belongs to a run with --threshold 0.8, this one has 0.7" in one_line(other, FAILURE)


def test_a_run_whose_work_directory_was_taken_over_ends(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    """Two runs never mix their files: the earlier one fails before it sends another."""
    import minwise as mw
    from minwise.progress import NullProgress

    class Takeover(NullProgress):
        def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Any:  # noqa: ANN401
            bucket.pipe_file("data/state/owner.json", b"another run")
            return super().stage(name, total, unit, done=done)

    with pytest.raises(mw.MinwiseError, match="work s3://data/state was taken over by another run"):
        mw.dedup("s3://data/in", folder / "out", work="s3://data/state", progress=Takeover())
    assert not (folder / "out").exists()


def test_a_work_directory_in_an_input_at_s3_is_refused(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    done = run(
        folder, "dedup", "s3://data/in", "-o", "out", "--work", "s3://data/in/work", job=Job(environment=environment)
    )
    assert "--work must not lie in an input directory" in one_line(done, USAGE)


WRONG = {
    "no such bucket": ({}, "s3://nowhere/in", "s3://nowhere/in: No such file or directory"),
    "no such file": ({}, "s3://data/in/x.csv", "s3://data/in/x.csv: No such file or directory"),
    "no server": (
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        "s3://data/in",
        "s3://data/in: Could not connect to the endpoint URL",
    ),
    "no password": ({"AWS_SECRET_ACCESS_KEY": ""}, "s3://data/in", "s3://data/in: Partial credentials found"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_s3_are_one_line_that_names_the_url(
    name: str, bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    changes, given, message = WRONG[name]
    done = run(folder, "dedup", given, "-o", "out", job=Job(environment={**environment, **changes}))
    assert message in one_line(done, INPUT_OUTPUT)


def test_an_output_in_a_bucket_that_does_not_exist_names_its_url(
    bucket: fsspec.AbstractFileSystem, folder: Path, environment: dict[str, str]
) -> None:
    done = run(folder, "dedup", "in", "-o", "s3://nowhere/out", job=Job(environment=environment))
    assert "s3://nowhere/out: " in one_line(done, INPUT_OUTPUT)


@pytest.mark.parametrize("given", ["data", "data/*.jsonl", "data/part-0.jsonl"])
def test_hub_repositories_are_read_like_local_files(given: str, folder: Path, tmp_path: Path) -> None:
    files = {f"data/part-{number}.jsonl": lines(number) for number in range(3)}
    with hub_server("ours/ships", {**files, "README.md": b"# Ships\n"}) as endpoint:
        job = Job(environment={"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hub")})
        remote = run(folder, "dedup", f"hf://datasets/ours/ships/{given}", "-o", "remote", job=job)
        missing = run(folder, "dedup", "hf://datasets/ours/ships/data/x.jsonl", "-o", "none", job=job)
    assert remote.status == OK, remote.err
    assert "x.jsonl: No such file or directory" in one_line(missing, INPUT_OUTPUT)
    assert run(folder, "dedup", given.replace("data", "in"), "-o", "local").status == OK
    assert sorted(kept(folder / "remote").values()) == sorted(kept(folder / "local").values())
