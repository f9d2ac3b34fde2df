"""Demo: deduplicate the sources, licences and notes of this Python installation.

    python examples/demo.py

The demo collects the files into target/demo/texts.jsonl, runs ``minwise dedup`` on them, prints what was found, and
builds an index of the kept texts for ``minwise serve``.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.markup import escape

ROOT = Path(__file__).parents[1]
MAX_FILES = 4000
MAX_BYTES = 200_000
SUFFIXES = {".py", ".txt", ".md", ".rst"}
NAMES = {"METADATA", "RECORD"}
LICENCES = ("licen", "copying", "notice", "authors")
# Caches contain no text; tests are half of some packages, and similar to each other.
EXCLUDED = {"__pycache__", "test", "tests", "site-packages", "dist-packages"}
SHOWN_CLUSTERS = 4
SHOWN_PAIRS = 3
# Similarities worth showing: neither exact copies nor barely similar documents.
SHOWN_SIMILARITIES = (0.8, 0.99)
WIDTH = 96
# Columns to the left of listed names.
MARGIN = 11


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A removed document and the kept document."""

    removed: str
    kept: str
    similarity: float


def main() -> None:
    """Collect, deduplicate, show the result and build an index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-files", type=int, default=MAX_FILES, help="maximum number of files")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "demo", help="directory of texts and results")
    args = parser.parse_args()
    console = make_console()
    folder: Path = args.folder
    texts, clean = short_path(folder / "texts.jsonl"), short_path(folder / "clean")

    console.print("[bold]1  Collect[/] the files of the Python installation: sources, licences, notes")
    paths = collect(Path(texts), args.max_files)
    console.print(f"   {len(paths):,} files, {Path(texts).stat().st_size / 1e6:,.1f} MB, in {escape(texts)}\n")

    console.print("[bold]2  Deduplicate[/] them")
    run_command(console, "dedup", texts, "-o", clean, "--overwrite")

    report = json.loads((Path(clean) / "report.json").read_text(encoding="utf-8"))
    console.print("\n[bold]3  Inspect[/] the result")
    show_counts(console, report["counts"])
    pairs = read_pairs(Path(clean))
    show_clusters(console, pairs)
    shown = choose_pairs(pairs, paths)
    show_pairs(console, shown, paths)

    console.print("\n[bold]4  Index[/] the kept texts, so that they can be searched")
    index = short_path(folder / "texts.mw")
    build_index(console, index, str(Path(clean) / "kept" / Path(texts).name))
    show_next(console, texts, index, shown, paths)
    console.print(
        f"\n   The clean copy is in {escape(clean)}/kept. Open {escape(clean)}/report.html to see what was removed."
    )


def make_console() -> Console:
    """Return a console; in a pipe it writes lines of a fixed width without colours."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def short_path(path: Path) -> str:
    """Return the path relative to the current directory if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def collect(output: Path, max_files: int) -> dict[str, Path]:
    """Write a JSON line per file, with id and text; return the path of each id."""
    output.parent.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    with output.open("w", encoding="utf-8") as lines:
        for name, path, text in islice(read_texts(), max_files):
            lines.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
            paths[name] = path
    return paths


def read_texts() -> Iterator[tuple[str, Path, str]]:
    """Yield name, path and text of every text file: installed packages first, then the standard library."""
    folders = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
    for folder in folders:
        for path in walk(folder):
            text = read_text(path)
            if text:
                yield f"{folder.name}/{path.relative_to(folder).as_posix()}", path, text


def read_text(path: Path) -> str:
    """Return the text of a file, or "" if it is too long, not text, or not readable."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= MAX_BYTES else ""
    except (OSError, UnicodeDecodeError):
        return ""


def walk(folder: Path) -> Iterator[Path]:
    """Yield the text files below a folder in a fixed order."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - EXCLUDED)
        yield from (Path(directory, name) for name in sorted(names) if is_text(name))


def is_text(name: str) -> bool:
    """Return whether a file of this name is a text file."""
    return Path(name).suffix.lower() in SUFFIXES or name in NAMES or name.lower().startswith(LICENCES)


def run_command(console: Console, *words: str) -> None:
    """Print and run a command."""
    console.print(f"   [bold cyan]$ minwise {escape(shlex.join(words))}[/]\n")
    console.file.flush()
    subprocess.run([sys.executable, "-m", "minwise", *words], check=True)


def read_pairs(clean: Path) -> list[Pair]:
    """Return the removed documents with their kept documents, in document order."""
    rows = pq.read_table(clean / "removed.parquet", columns=["id", "kept_id", "similarity"]).to_pylist()
    return [Pair(removed=row["id"], kept=row["kept_id"], similarity=row["similarity"]) for row in rows]


def show_counts(console: Console, counts: dict[str, int]) -> None:
    """Print the counts: read = kept + removed + quarantined."""
    parts = [f"{counts[name]:,} {name}" for name in ("kept", "removed", "quarantined")]
    console.print(f"   {counts['read']:,} read = {' + '.join(parts)}")


def show_clusters(console: Console, pairs: list[Pair]) -> None:
    """Print the largest clusters with some of their members."""
    members: dict[str, list[str]] = {}
    for pair in pairs:
        members.setdefault(pair.kept, []).append(pair.removed)
    largest = sorted(members.items(), key=lambda item: -len(item[1]))[:SHOWN_CLUSTERS]
    console.print("\n   [bold]The largest clusters[/]: size, kept document, some removed documents")
    for kept, others in largest:
        console.print(f"   {len(others) + 1:>6,}  [green]{escape(short_name(kept))}[/]")
        console.print(f"   {'':6}  [dim]{escape(list_names(others, console.width - MARGIN))}[/]")


def list_names(names: list[str], width: int) -> str:
    """Return as many names as fit into a line, and the number of the others."""
    different = list(dict.fromkeys(short_name(name) for name in names))
    for count in range(len(different), 0, -1):
        more = f" and {len(names) - count:,} more" if len(names) > count else ""
        line = ", ".join(different[:count]) + more
        if len(line) <= width:
            return line
    return shorten(different[0], width)


def short_name(name: str) -> str:
    """Return the name without the site-packages folder and version numbers."""
    return re.sub(r"-[^/]*\.dist-info/(licenses/)?", ": ", name.removeprefix("site-packages/"))


def package(name: str) -> str:
    """Return the package of a file; vendored copies count as part of the package that contains them."""
    parts = name.split("/")
    return parts[1].split("-")[0] if parts[0] == "site-packages" else parts[0]


def choose_pairs(pairs: list[Pair], paths: dict[str, Path]) -> list[Pair]:
    """Return a few long near-duplicates, preferably of different packages, and one per pair of packages."""

    def rank(pair: Pair) -> tuple[bool, bool, int]:
        is_code = pair.removed.endswith(".py")
        return package(pair.removed) != package(pair.kept), is_code, paths[pair.removed].stat().st_size

    low, high = SHOWN_SIMILARITIES
    chosen: dict[frozenset[str], Pair] = {}
    for pair in sorted((pair for pair in pairs if low <= pair.similarity <= high), key=rank, reverse=True):
        chosen.setdefault(frozenset((package(pair.removed), package(pair.kept))), pair)
    return list(chosen.values())[:SHOWN_PAIRS]


def show_pairs(console: Console, pairs: list[Pair], paths: dict[str, Path]) -> None:
    """Print near-duplicates, each with a line in which they differ."""
    if pairs:
        console.print("\n   [bold]Similar, but not identical[/]: kept document, removed document, a line that differs")
    for pair in pairs:
        lines = differing_lines(paths[pair.kept], paths[pair.removed])
        console.print(f"   {pair.similarity:>6.1%}  [green]{escape(short_name(pair.kept))}[/]")
        console.print(f"   {'':6}  [red]{escape(short_name(pair.removed))}[/]")
        for colour, line in zip(("green", "red"), lines, strict=True):
            if line:
                console.print(f"   {'':6}  [dim]│[/] [{colour}]{escape(shorten(line, console.width - MARGIN - 2))}[/]")


def differing_lines(kept: Path, removed: Path) -> tuple[str, str]:
    """Return the changed line, before and after, that is most similar to its original, so the change is easy to see."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (kept, removed))
    best, found = 0.0, ("", "")
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "replace":
            continue
        for before, after in zip(old[start:end], new[new_start:new_end], strict=False):
            ratio = SequenceMatcher(None, before.strip(), after.strip()).ratio()
            if ratio > best and words_of(before) != words_of(after):
                best, found = ratio, (before.strip(), after.strip())
    return found


def words_of(line: str) -> list[str]:
    """Return what minwise compares: words, without case, spaces and punctuation."""
    return re.findall(r"\w+", line.lower())


def shorten(line: str, width: int) -> str:
    """Return the line cut to a width."""
    return line if len(line) <= width else line[: width - 1] + "…"


def build_index(console: Console, index: str, kept: str) -> None:
    """Build an index of the kept texts, replacing that of an earlier run."""
    shutil.rmtree(index, ignore_errors=True)
    run_command(console, "index", "create", index, "--store-text")
    run_command(console, "index", "add", index, kept)


def show_next(console: Console, texts: str, index: str, pairs: list[Pair], paths: dict[str, Path]) -> None:
    """Print commands to try, with existing file names."""
    folder = Path(texts).parent
    lines = [
        ("a web page that finds similar texts; open http://127.0.0.1:8765/", ["serve", "--index", index]),
        ("every pair, not only those of removed documents", ["pairs", texts, "-o", str(folder / "pairs.csv")]),
        ("what a threshold of 0.5 removes", ["dedup", texts, "-o", str(folder / "half"), "--threshold", "0.5"]),
        ("the S-curve of the plan", ["plan", "--plot", str(folder / "curve.svg")]),
        ("measure the recall on these texts", ["audit", texts]),
    ]
    if pairs:
        kept, removed = (short_path(paths[name]) for name in (pairs[0].kept, pairs[0].removed))
        lines.insert(1, ("what the first pair above shares", ["compare", kept, removed]))
    console.print("\n[bold]5  Next steps[/]")
    for why, words in lines:
        console.print(f"   [dim]# {why}[/]")
        console.print(f"   [cyan]{escape(as_typed([command_name(), *words], console.width - 3))}[/]")


def command_name() -> str:
    """Return the command as the shell finds it."""
    return "minwise" if shutil.which("minwise") else short_path(Path(sys.executable).with_name("minwise"))


def as_typed(words: list[str], width: int) -> str:
    """Return the command, with line continuations if it is too long; an option stays next to its value."""
    lines = [""]
    for word, before in zip(words, ["", *words], strict=False):
        is_value = before.startswith("-")
        if not is_value and len(lines[-1]) + len(word) + 3 > width:
            lines.append("    ")
        lines[-1] += (" " if lines[-1].strip() else "") + shlex.quote(word)
    return " \\\n   ".join(lines)


if __name__ == "__main__":
    main()
