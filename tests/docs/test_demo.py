"""Output and files of the demo."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from server.running import serving

ROOT = Path(__file__).parents[2]
MAX_FILES = 300


def run_demo(folder: Path) -> str:
    """Return what the demo prints into a pipe."""
    command = [
        sys.executable,
        str(ROOT / "examples" / "demo.py"),
        "--max-files",
        str(MAX_FILES),
        "--folder",
        str(folder),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the demo's files."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """Return what the demo prints."""
    return run_demo(folder)


def test_demo_prints_the_counts_of_the_report(printed: str, folder: Path) -> None:
    counts = json.loads((folder / "clean" / "report.json").read_text(encoding="utf-8"))["counts"]
    line = re.search(r"([\d,]+) read = ([\d,]+) kept \+ ([\d,]+) removed \+ ([\d,]+) quarantined", printed)
    assert line is not None
    read, kept, removed, quarantined = (int(number.replace(",", "")) for number in line.groups())
    assert (read, kept, removed, quarantined) == tuple(
        counts[name] for name in ("read", "kept", "removed", "quarantined")
    )
    assert kept + removed + quarantined == read == MAX_FILES


def test_demo_prints_commands_for_its_own_files(printed: str, folder: Path) -> None:
    kept = (folder / "clean" / "kept" / "texts.jsonl").read_bytes().count(b"\n")
    assert f"{kept:,} kept" in printed
    assert f"$ minwise dedup {folder}/texts.jsonl -o {folder}/clean --overwrite" in printed
    assert {"dedup", "pairs", "plan", "index", "serve"} <= set(re.findall(r"minwise (\w+)", printed))


def test_printed_serve_command_finds_a_kept_text(printed: str, folder: Path) -> None:
    command = re.search(r"minwise serve .*?(?<!\\)$", printed, re.MULTILINE | re.DOTALL)
    assert command is not None
    name, *words = shlex.split(command[0].replace("\\\n", " "))
    assert (name, words) == ("minwise", ["serve", "--index", f"{folder}/texts.mw"])
    lines = (folder / "clean" / "kept" / "texts.jsonl").read_bytes().splitlines()
    kept = [json.loads(line) for line in lines]
    with serving(folder / "texts.mw") as server:
        assert server.get("/v1/stats").json["documents"] == len(kept)
        answer = server.post("/v1/query", {"text": kept[0]["text"]}).json
    assert (answer["hits"][0]["id"], answer["hits"][0]["similarity"]) == (kept[0]["id"], 1.0)
    assert answer["hits"][0]["snippet"]


def test_second_run_prints_the_same_apart_from_timings(printed: str, folder: Path) -> None:
    again = run_demo(folder)
    timings = re.compile(r"^read .*|[\d.]+ s\b", re.MULTILINE)
    untimed = [timings.sub("", text) for text in (printed, again)]
    assert untimed[0] == untimed[1]


def test_demo_output_has_at_most_100_columns(printed: str) -> None:
    """Sections with paths are excluded."""
    own = printed.partition("3  Inspect")[2].partition("4  Index")[0]
    assert own
    assert max(map(len, own.splitlines())) <= 100
