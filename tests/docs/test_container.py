"""Containerfile, without a container: its rules, and its commands in a directory of this machine."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_wheel import ROOT, built

LINES = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
INSTRUCTIONS = [
    (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in LINES) if word and word != "#"
]


def _arguments(word: str) -> list[str]:
    return [rest for found, rest in INSTRUCTIONS if found == word]


def _json(word: str) -> list[str]:
    (rest,) = _arguments(word)
    words: list[str] = json.loads(rest[rest.index("[") :])
    return words


def test_final_stage_does_not_run_as_root() -> None:
    last = max(number for number, (word, _) in enumerate(INSTRUCTIONS) if word == "FROM")
    users = [rest for word, rest in INSTRUCTIONS[last:] if word == "USER"]
    assert len(users) == 1
    assert re.fullmatch(r"[1-9]\d+", users[0])  # a number, which a cluster can check without the image
    names = [word for word, _ in INSTRUCTIONS[last:]]
    assert "RUN" not in names[names.index("USER") :]


def test_probe_asks_the_port_that_the_server_listens_on() -> None:
    (port,) = _arguments("EXPOSE")
    command = _json("CMD")
    assert command[command.index("--port") + 1] == port
    assert f":{port}/healthz" in _json("HEALTHCHECK")[-1]


def test_images_have_no_registry_and_a_version() -> None:
    for image in _arguments("FROM"):
        assert re.fullmatch(r"python:\$\{PYTHON\}-slim( AS \w+)?", image)
    (version,) = _arguments("ARG")
    assert re.fullmatch(r"PYTHON=3\.1\d", version)


@built
@pytest.mark.timeout(900)
def test_commands_install_serve_and_probe(tmp_path: Path) -> None:
    """Run each command with the directories of the image below ``tmp_path``."""
    home, data = tmp_path / "opt" / "minwise", tmp_path / "data"
    data.mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copytree(ROOT / "dist", tmp_path / "tmp" / "dist")
    search = f"{home}/bin:{tmp_path}/bin:/usr/bin:/bin"
    for name, words in (("python", [sys.executable]), ("pip", [sys.executable, "-m", "pip"])):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
        script.chmod(0o755)
    for command in _arguments("RUN"):
        if command.startswith("useradd"):
            continue
        done = _shell(re.sub(r"(?<![\w.])/(opt|tmp)/", rf"{tmp_path}/\1/", command), search)
        if "No matching distribution found" in done.stderr:
            pytest.skip("the packages that minwise needs cannot be downloaded here")
        assert done.returncode == 0, done.stderr
    assert _shell(f"minwise token {data}/tokens --read", search).returncode == 0
    words = [word.replace("/data/", f"{data}/") for word in [*_json("ENTRYPOINT"), *_json("CMD")]]
    words[words.index("--port") + 1] = "0"
    with subprocess.Popen(
        [str(home / "bin" / words[0]), *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().rstrip("/\n").rpartition(":")[2]
        assert _probe(port, home) == 0
        server.terminate()
        server.wait(60)
    assert _probe(port, home) == 1


def _shell(command: str, search: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": search}
    return subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, encoding="utf-8", check=False
    )


def _probe(port: str, home: Path) -> int:
    program, *words = [word.replace(":8765/", f":{port}/") for word in _json("HEALTHCHECK")]
    return subprocess.run([str(home / "bin" / program), *words], capture_output=True, check=False).returncode
