"""Input, output and stages of a Spark run at s3://, through a real S3 server process on loopback."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pytest
from support.commands import OK, Job, run
from support.fault_corpora import write_corpus
from support.s3_server import s3_server
from support.spark.arrangement import differing_files
from support.spark.cluster import FAST_JAVA, FAST_PLANS
from support.spark.processes import group_members, wait_for

MISSING = [package for package in ("moto", "s3fs") if find_spec(package) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; install minwise with the extra dev"
)

# With a work directory of this machine only in `make torture`: the other case needs all that it needs.
TORTURE = bool(os.environ.get("MINWISE_TORTURE"))
SEARCH = ("--threshold", "0.7", "--bands", "10", "--rows", "4", "--on-error", "quarantine-rows", "--quiet")
SPARK = ("--engine", "spark", "--master", "local[2]")
CONF = {**FAST_PLANS, "spark.sql.shuffle.partitions": "3", "spark.driver.extraJavaOptions": FAST_JAVA}


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Start an S3 server; return the variables that lead driver and executors to it."""
    with s3_server() as variables:
        yield variables


@pytest.fixture
def bucket(environment: dict[str, str], tmp_path: Path) -> Iterator[fsspec.AbstractFileSystem]:
    """Return the file system with a new bucket named data, which holds a corpus in three formats."""
    filesystem = fsspec.filesystem(
        "s3",
        key=environment["AWS_ACCESS_KEY_ID"],
        secret=environment["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    filesystem.mkdir("data")
    filesystem.put(f"{write_corpus(tmp_path / 'in', 150)}/", "data/in/", recursive=True)
    yield filesystem
    filesystem.rm("data", recursive=True)


@contextmanager
def spark_run(folder: Path, environment: dict[str, str], work: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the command in a process group of its own; kill and await all of the group at the end of the block."""
    conf = [word for name, value in CONF.items() for word in ("--spark-conf", f"{name}={value}")]
    words = ["dedup", "s3://data/in", "-o", "s3://data/out", "--work", work, *SPARK, *conf, *SEARCH]
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "minwise", *words],
            cwd=folder,
            env={**os.environ, **environment, "SPARK_LOCAL_DIRS": str(folder / "local")},
            stdin=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if group_members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for("the end of the Java process", lambda: group_members(process.pid) == [])


def finished_stages(bucket: fsspec.AbstractFileSystem, work: str) -> dict[str, object]:
    """Return the file lists of finished stages, each with the time at which it was written."""
    files = bucket if work.startswith("s3://") else fsspec.filesystem("file")
    return {path: files.modified(path) for path in files.glob(f"{work}/**/_files.json")}


@pytest.mark.parametrize("work", ["work", "s3://data/work"] if TORTURE else ["s3://data/work"])
def test_killed_run_resumes_and_writes_the_bytes_of_the_local_engine(
    work: str, bucket: fsspec.AbstractFileSystem, environment: dict[str, str], tmp_path: Path
) -> None:
    stages = work if work.startswith("s3://") else str(tmp_path / work)
    with spark_run(tmp_path, environment, work) as first:

        def has_stage() -> bool:
            assert first.poll() is None, (tmp_path / "errors").read_text()
            return bool(finished_stages(bucket, stages))

        wait_for("a finished stage", has_stage)
        os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    kept = finished_stages(bucket, stages)
    assert not bucket.exists("data/out/report.json")
    with spark_run(tmp_path, environment, work) as second:
        assert second.wait() == OK, (tmp_path / "errors").read_text()
    after = finished_stages(bucket, stages)
    assert kept.items() < after.items()
    assert json.loads(bucket.cat_file("data/out/run.json"))["resumed"]
    local = run(tmp_path, "dedup", "s3://data/in", "-o", "whole", *SEARCH, job=Job(environment=environment))
    assert local.status == OK, local.err
    bucket.get("data/out/", f"{tmp_path}/fetched/", recursive=True)
    assert differing_files(tmp_path / "whole", tmp_path / "fetched") == []
