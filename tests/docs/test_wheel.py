"""Wheel and source distribution that ``make wheel`` writes to dist/."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import minwise as mw

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "minwise"
WHEELS = sorted((ROOT / "dist").glob("minwise-*.whl"))
SOURCES = sorted((ROOT / "dist").glob("minwise-*.tar.gz"))
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
def test_wheel_runs_in_a_new_environment_without_rust(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    install = [str(scripts / "pip"), "install", "--quiet", "--disable-pip-version-check", str(WHEELS[0])]
    done = subprocess.run(install, capture_output=True, encoding="utf-8", check=False)
    if "No matching distribution found" in done.stderr or "Failed to establish a new connection" in done.stderr:
        pytest.skip(f"the packages that minwise needs cannot be downloaded here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr

    def run(*words: str) -> str:
        command, environment = [str(scripts / words[0]), *words[1:]], {"PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
        ).stdout

    assert run("minwise", "--version") == f"minwise, version {mw.__version__}\n"
    corpus = str(ROOT / "examples" / "newsroom" / "docs.jsonl")
    run("minwise", "dedup", corpus, "-o", "clean", "--shingle", "word:3", "--threshold", "0.5", "--quiet")
    assert len((tmp_path / "clean" / "kept" / "docs.jsonl").read_text(encoding="utf-8").splitlines()) == 29
    assert run("python", "-c", "import minwise; print(minwise.__file__)").startswith(str(tmp_path))


@built
def test_source_distribution_has_all_sources_and_nothing_compiled() -> None:
    with tarfile.open(SOURCES[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml", "src/minwise/py.typed"}
    crates = {f"crates/{crate}/{file}" for crate in ("kernel", "kernel-py") for file in ("Cargo.toml", "src/lib.rs")}
    assert needed | crates <= names
    assert not any(name.endswith((".so", ".pyc")) for name in names)
