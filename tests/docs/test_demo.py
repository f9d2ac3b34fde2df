"""The demo runs, and prints the numbers of the report."""

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
    """What the demo prints into a pipe."""
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
    """Where the demo leaves its files."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """What it prints."""
    return run_demo(folder)


def test_demo_prints_the_counts_of_the_report(printed: str, folder: Path) -> None:
    """Read = kept + removed + quarantined, on the screen as in the file."""
    counts = json.loads((folder / "clean" / "report.json").read_text(encoding="utf-8"))["counts"]
    line = re.search(r"([\d,]+) read = ([\d,]+) kept \+ ([\d,]+) removed \+ ([\d,]+) quarantined", printed)
    assert line is not None
    read, kept, removed, quarantined = (int(number.replace(",", "")) for number in line.groups())
    assert (read, kept, removed, quarantined) == tuple(
        counts[name] for name in ("read", "kept", "removed", "quarantined")
    )
    assert kept + removed + quarantined == read == MAX_FILES


def test_demo_leaves_what_it_says(printed: str, folder: Path) -> None:
    """The texts, the clean copy, and commands that name files that exist."""
    kept = (folder / "clean" / "kept" / "texts.jsonl").read_bytes().count(b"\n")
    assert f"{kept:,} kept" in printed
    assert f"$ minwise dedup {folder}/texts.jsonl -o {folder}/clean --overwrite" in printed
    assert {"dedup", "pairs", "plan", "index", "serve"} <= set(re.findall(r"minwise (\w+)", printed))


def test_demo_can_be_served(printed: str, folder: Path) -> None:
    """The command that it prints serves what was kept: each text is found again."""
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


def test_demo_runs_again(printed: str, folder: Path) -> None:
    """With the same result; only the time it took may differ."""
    again = run_demo(folder)
    untimed = [re.sub(r"^read .*", "", text, flags=re.MULTILINE) for text in (printed, again)]
    assert untimed[0] == untimed[1]


def test_demo_fits_the_screen(printed: str) -> None:
    """What the demo itself says is at most 100 columns wide, but for paths."""
    own = printed.partition("3  Inspect")[2].partition("4  Index")[0]
    assert own
    assert max(map(len, own.splitlines())) <= 100
