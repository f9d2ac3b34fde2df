"""Workflows of GitHub, which cannot run here: they follow their schema, and their steps are commands that can."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Commands besides those of make: what installs the compiler.
OTHER_COMMANDS = ("rustup toolchain install",)
REFERENCE = re.compile(r"v\d+|release/v\d+|[0-9a-f]{40}")


def _workflow(path: Path) -> dict[str, Any]:
    workflow: dict[str, Any] = YAML(typ="safe").load(path)
    return workflow


def _jobs(path: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = _workflow(path)["jobs"]
    return jobs


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _jobs(path).values() for step in job["steps"]]


def _targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def test_there_are_workflows_of_checks_and_releases() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_follows_the_schema(path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_schema_refuses_a_misspelt_key(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on", "run-on"), encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(wrong)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_is_a_make_target(path: Path) -> None:
    commands = [step["run"] for step in _steps(path) if "run" in step]
    assert commands
    for command in commands:
        words = command.split()
        assert command.startswith(OTHER_COMMANDS) or (words[0] == "make" and words[1] in _targets()), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_have_a_version_and_jobs_only_the_rights_they_need(path: Path) -> None:
    for step in _steps(path):
        if "uses" in step:
            assert REFERENCE.fullmatch(step["uses"].partition("@")[2]), step["uses"]
    workflow = _workflow(path)
    assert workflow["permissions"] == {"contents": "read"}
    may_write = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    expected = {"contents": "read", "id-token": "write", "attestations": "write"}
    assert may_write == ({"publish": expected} if path.stem == "release" else {})


def test_checks_run_on_every_platform_and_python() -> None:
    jobs = _jobs(ROOT / ".github" / "workflows" / "ci.yml")
    matrices = {name: job["strategy"]["matrix"] for name, job in jobs.items() if "strategy" in job}
    systems = {
        str(entry) for matrix in matrices.values() for entry in [*matrix["system"], *_included(matrix, "system")]
    }
    for wanted in ("ubuntu-24.04", "ubuntu-24.04-arm", "macos-", "windows-"):
        assert any(system.startswith(wanted) for system in systems), wanted
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert matrices["check"]["python"] == supported
    assert f'requires-python = ">={supported[0]}"' in text
    assert f"abi3-py{supported[0].replace('.', '')}" in (ROOT / "crates/kernel-py/Cargo.toml").read_text("utf-8")


def _included(matrix: dict[str, Any], key: str) -> list[str]:
    return [entry[key] for entry in matrix.get("include", []) if key in entry]


def test_release_builds_a_wheel_for_every_platform() -> None:
    entries = _jobs(ROOT / ".github" / "workflows" / "release.yml")["wheels"]["strategy"]["matrix"]["include"]
    assert {entry["target"] for entry in entries} == {
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "universal2-apple-darwin",
        "x86_64-pc-windows-msvc",
    }
