"""Install a wheel into a new environment without Rust, and time the first result: ``try_wheel.py DIST``.

Needs nothing but the standard library, so that any Python can run it. Prints one line of JSON: the version of Python,
the wheel, the seconds of each step, and the number of kept documents. Exit code 3 if packages that minwise depends on
cannot be downloaded.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

DOCS = Path(__file__).parents[2] / "examples" / "newsroom" / "docs.jsonl"
NO_PACKAGES = ("No matching distribution found", "Failed to establish a new connection", "Could not fetch URL")
UNAVAILABLE = 3


def _without_rust() -> dict[str, str]:
    """Return the environment without the directories that hold a Rust compiler, and without paths of other packages."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    usable = [
        folder for folder in folders if not any((Path(folder) / name).exists() for name in ("cargo", "cargo.exe"))
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARGO", "RUST"))}
    return {**kept, "PATH": os.pathsep.join(usable)}


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env=_without_rust(), capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(UNAVAILABLE if any(sign in done.stderr for sign in NO_PACKAGES) else 1)
    return done.stdout


def try_wheel(dist: Path, folder: Path) -> dict[str, object]:
    """Return what was measured; ``folder`` is empty."""
    start = time.monotonic()
    venv.create(folder / "venv", with_pip=True)
    python = str(next(path for path in (folder / "venv").glob("*/python*") if path.stem == "python"))
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
    created = time.monotonic()
    # pip itself chooses the wheel of this platform among those of other ones.
    _run(folder, *pip, "download", "--no-deps", "--no-index", "--find-links", str(dist), "--dest", "wheel", "minwise")
    (wheel,) = (folder / "wheel").glob("*.whl")
    _run(folder, *pip, "install", "--only-binary", ":all:", str(wheel))
    installed = time.monotonic()
    options = ("-o", "clean", "--shingle", "word:3", "--threshold", "0.5", "--quiet")
    _run(folder, python, "-m", "minwise", "dedup", str(DOCS), *options)
    done = time.monotonic()
    assert _run(folder, python, "-c", "import minwise; print(minwise.__file__)").startswith(str(folder))
    return {
        "python": platform.python_version(),
        "wheel": wheel.name,
        "environment_seconds": round(created - start, 1),
        "install_seconds": round(installed - created, 1),
        "first_result_seconds": round(done - installed, 1),
        "kept": len((folder / "clean" / "kept" / "docs.jsonl").read_text(encoding="utf-8").splitlines()),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        measured = try_wheel(Path(sys.argv[1]).resolve(), Path(temporary).resolve())
    sys.stdout.write(f"{json.dumps(measured)}\n")
