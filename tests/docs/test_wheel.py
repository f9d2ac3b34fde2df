"""Wheel and source distribution that ``make wheel`` writes to dist/."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from support.try_wheel import UNAVAILABLE

import minwise as mw

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "minwise"
WHEELS = sorted((ROOT / "dist").glob("minwise-*.whl"))
SOURCES = sorted((ROOT / "dist").glob("minwise-*.tar.gz"))
SUPPORTED_MINORS = range(10, 15)
# Of the first command after the installation: its start and a dedup of 40 documents take about one second.
SECONDS = 60
WRITTEN = max(
    path.stat().st_mtime for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".so")
)
is_new = len(WHEELS) == len(SOURCES) == 1 and WHEELS[0].stat().st_mtime > WRITTEN
built = pytest.mark.skipif(not is_new, reason="nothing is built from these sources; run make wheel")


def test_version_is_that_of_the_kernel() -> None:
    command = [sys.executable, "-m", "minwise", "--version"]
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    assert printed == f"minwise, version {mw.__version__}\n"
    assert f'\nversion = "{mw.__version__}"\n' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_script_is_printed(shell: str) -> None:
    main = "import sys; sys.argv[0] = 'minwise'; from minwise.cli import main; main()"
    environment = {**os.environ, "_MINWISE_COMPLETE": f"{shell}_source"}
    done = subprocess.run(
        [sys.executable, "-c", main], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert f"_MINWISE_COMPLETE={shell}_complete" in done.stdout
    assert "Traceback" not in done.stderr


@built
def test_wheel_has_the_stable_abi_of_the_oldest_python() -> None:
    assert "-cp310-abi3-" in WHEELS[0].name
    with zipfile.ZipFile(WHEELS[0]) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        described = Parser().parsestr(wheel.read(metadata).decode())
    assert (described["Name"], described["Version"], described["Requires-Python"]) == (
        "minwise",
        mw.__version__,
        ">=3.10",
    )


@built
def test_wheel_has_every_file_of_the_package_and_the_kernel() -> None:
    files = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    wanted = {name for name in files if not name.endswith((".pyc", ".so"))} | {"minwise/_kernel.abi3.so"}
    with zipfile.ZipFile(WHEELS[0]) as wheel:
        packed = set(wheel.namelist())
    assert "minwise/py.typed" in wanted
    assert wanted - packed == set()


@built
@pytest.mark.parametrize("which", ["oldest", "newest"])
@pytest.mark.timeout(900)
def test_wheel_gives_a_first_result_without_rust(which: str) -> None:
    """A minute is the aim on an idle machine; the bound allows for one that runs other tests at the same time."""
    pythons = _pythons()
    _, python = (min if which == "oldest" else max)(pythons)
    done = subprocess.run(
        [python, str(ROOT / "tests" / "support" / "try_wheel.py"), str(ROOT / "dist")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"the packages that minwise needs cannot be downloaded here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    print(done.stdout)  # noqa: T201 - pytest -rP shows the seconds of each step
    assert (measured["wheel"], measured["kept"]) == (WHEELS[0].name, 29)
    assert measured["first_result_seconds"] < SECONDS


def _pythons() -> list[tuple[int, str]]:
    """Return the minor version and the path of every supported Python that this machine has."""
    found = [(sys.version_info.minor, sys.executable)]
    for minor in SUPPORTED_MINORS:
        by_name = [path] if (path := shutil.which(f"python3.{minor}")) else []
        of_pyenv = (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")
        found += [(minor, path) for path in [*by_name, *map(str, of_pyenv)] if _has_venv(path)]
    return found


def _has_venv(python: str) -> bool:
    command = [python, "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@built
def test_source_distribution_has_all_sources_and_nothing_compiled() -> None:
    with tarfile.open(SOURCES[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml", "src/minwise/py.typed"}
    crates = {f"crates/{crate}/{file}" for crate in ("kernel", "kernel-py") for file in ("Cargo.toml", "src/lib.rs")}
    assert needed | crates <= names
    assert not any(name.endswith((".so", ".pyc")) for name in names)
