"""Deduplicates texts that every machine has: the sources, licences and notes of this Python installation.

    python examples/demo.py

Collects them into target/demo/texts.jsonl, runs ``minwise dedup`` on that, tells what it found, and makes an index of
what is left that ``minwise serve`` can show.
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
MOST_FILES = 4000
MOST_BYTES = 200_000
SUFFIXES = {".py", ".txt", ".md", ".rst"}
NAMES = {"METADATA", "RECORD"}
LICENCES = ("licen", "copying", "notice", "authors")
# Caches hold no text; tests are half of some packages, and all alike.
LEFT_OUT = {"__pycache__", "test", "tests", "site-packages", "dist-packages"}
SHOWN_CLUSTERS = 4
SHOWN_PAIRS = 3
# A removed document in this range is neither a mere copy nor a mere relative.
STRIKING = (0.8, 0.99)
WIDTH = 96
# Columns before what is listed.
MARGIN = 11


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A removed document and the kept one."""

    removed: str
    kept: str
    similarity: float


def main() -> None:
    """Collects, deduplicates, tells, remembers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=MOST_FILES, help="how many files to take at most")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "demo", help="where texts and result go")
    given = parser.parse_args()
    console = make_console()
    folder: Path = given.folder
    texts, clean = short_path(folder / "texts.jsonl"), short_path(folder / "clean")

    console.print("[bold]1  Collect[/] what Python came with: sources, licences, notes")
    paths = collect(Path(texts), given.most)
    console.print(f"   {len(paths):,} files, {Path(texts).stat().st_size / 1e6:,.1f} MB, in {escape(texts)}\n")

    console.print("[bold]2  Deduplicate[/] them")
    run_command(console, "dedup", texts, "-o", clean, "--overwrite")

    report = json.loads((Path(clean) / "report.json").read_text(encoding="utf-8"))
    console.print("\n[bold]3  Look[/] at what was found")
    show_counts(console, report["counts"])
    pairs = read_pairs(Path(clean))
    show_clusters(console, pairs)
    shown = choose_pairs(pairs, paths)
    show_pairs(console, shown, paths)

    console.print("\n[bold]4  Remember[/] what was kept, so that it can be asked")
    index = short_path(folder / "texts.mw")
    remember(console, index, str(Path(clean) / "kept" / Path(texts).name))
    show_next(console, texts, index, shown, paths)
    console.print(
        f"\n   The clean copy is in {escape(clean)}/kept. Open {escape(clean)}/report.html to see what was removed."
    )


def make_console() -> Console:
    """A console for people; into a pipe it writes lines of one width without colours."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def short_path(path: Path) -> str:
    """The path as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def collect(output: Path, most: int) -> dict[str, Path]:
    """Writes a JSON line per file, with id and text; returns where each id comes from."""
    output.parent.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    with output.open("w", encoding="utf-8") as lines:
        for name, path, text in islice(read_texts(), most):
            lines.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
            paths[name] = path
    return paths


def read_texts() -> Iterator[tuple[str, Path, str]]:
    """Name, path and text of every file worth it: installed packages first, then the standard library."""
    folders = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
    for folder in folders:
        for path in walk(folder):
            text = read_text(path)
            if text:
                yield f"{folder.name}/{path.relative_to(folder).as_posix()}", path, text


def read_text(path: Path) -> str:
    """The text of a file; nothing if it is too long, no text, or not ours to read."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= MOST_BYTES else ""
    except (OSError, UnicodeDecodeError):
        return ""


def walk(folder: Path) -> Iterator[Path]:
    """The text files below a folder, always in the same order."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        yield from (Path(place, name) for name in sorted(names) if is_text(name))


def is_text(name: str) -> bool:
    """Whether a file of this name is one to read."""
    return Path(name).suffix.lower() in SUFFIXES or name in NAMES or name.lower().startswith(LICENCES)


def run_command(console: Console, *words: str) -> None:
    """Runs the command before the eyes of the user."""
    console.print(f"   [bold cyan]$ minwise {escape(shlex.join(words))}[/]\n")
    console.file.flush()
    subprocess.run([sys.executable, "-m", "minwise", *words], check=True)


def read_pairs(clean: Path) -> list[Pair]:
    """Who was removed for whom, in document order."""
    rows = pq.read_table(clean / "removed.parquet", columns=["id", "kept_id", "similarity"]).to_pylist()
    return [Pair(removed=row["id"], kept=row["kept_id"], similarity=row["similarity"]) for row in rows]


def show_counts(console: Console, counts: dict[str, int]) -> None:
    """Where every file went; the three parts are the whole."""
    parts = [f"{counts[name]:,} {name}" for name in ("kept", "removed", "quarantined")]
    console.print(f"   {counts['read']:,} read = {' + '.join(parts)}: nothing is lost on the way")


def show_clusters(console: Console, pairs: list[Pair]) -> None:
    """The largest clusters and some of their names."""
    members: dict[str, list[str]] = {}
    for pair in pairs:
        members.setdefault(pair.kept, []).append(pair.removed)
    largest = sorted(members.items(), key=lambda item: -len(item[1]))[:SHOWN_CLUSTERS]
    console.print("\n   [bold]The largest clusters[/]: how many, who stays, some who go")
    for kept, others in largest:
        console.print(f"   {len(others) + 1:>6,}  [green]{escape(within(kept))}[/]")
        console.print(f"   {'':6}  [dim]{escape(list_names(others, console.width - MARGIN))}[/]")


def list_names(names: list[str], width: int) -> str:
    """As many of the names as fit a line, and how many there are beside them."""
    different = list(dict.fromkeys(within(name) for name in names))
    for count in range(len(different), 0, -1):
        more = f" and {len(names) - count:,} more" if len(names) > count else ""
        line = ", ".join(different[:count]) + more
        if len(line) <= width:
            return line
    return shorten(different[0], width)


def within(name: str) -> str:
    """The name as one would say it: without the folder of all packages, and without version numbers."""
    return re.sub(r"-[^/]*\.dist-info/(licenses/)?", ": ", name.removeprefix("site-packages/"))


def package(name: str) -> str:
    """The package that a file belongs to; vendored copies count as part of the one that holds them."""
    parts = name.split("/")
    return parts[1].split("-")[0] if parts[0] == "site-packages" else parts[0]


def choose_pairs(pairs: list[Pair], paths: dict[str, Path]) -> list[Pair]:
    """A few long near-duplicates, of different packages first and of no packages twice."""

    def appeal(pair: Pair) -> tuple[bool, bool, int]:
        is_code = pair.removed.endswith(".py")
        return package(pair.removed) != package(pair.kept), is_code, paths[pair.removed].stat().st_size

    low, high = STRIKING
    chosen: dict[frozenset[str], Pair] = {}
    for pair in sorted((pair for pair in pairs if low <= pair.similarity <= high), key=appeal, reverse=True):
        chosen.setdefault(frozenset((package(pair.removed), package(pair.kept))), pair)
    return list(chosen.values())[:SHOWN_PAIRS]


def show_pairs(console: Console, pairs: list[Pair], paths: dict[str, Path]) -> None:
    """Near-duplicates, each with a line in which they differ."""
    if pairs:
        console.print("\n   [bold]Alike, but not the same[/]: who stays, who goes, a line that changed")
    for pair in pairs:
        lines = differing_lines(paths[pair.kept], paths[pair.removed])
        console.print(f"   {pair.similarity:>6.1%}  [green]{escape(within(pair.kept))}[/]")
        console.print(f"   {'':6}  [red]{escape(within(pair.removed))}[/]")
        for colour, line in zip(("green", "red"), lines, strict=True):
            if line:
                console.print(f"   {'':6}  [dim]│[/] [{colour}]{escape(shorten(line, console.width - MARGIN - 2))}[/]")


def differing_lines(kept: Path, removed: Path) -> tuple[str, str]:
    """The line whose words changed and that is most like what it was, so that the eye finds the change."""
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (kept, removed))
    best, found = 0.0, ("", "")
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "replace":
            continue
        for before, after in zip(old[start:end], new[new_start:new_end], strict=False):
            alike = SequenceMatcher(None, before.strip(), after.strip()).ratio()
            if alike > best and words_of(before) != words_of(after):
                best, found = alike, (before.strip(), after.strip())
    return found


def words_of(line: str) -> list[str]:
    """What is left of a line for minwise: words, without case, spaces and punctuation."""
    return re.findall(r"\w+", line.lower())


def shorten(line: str, width: int) -> str:
    """As much of the line as fits."""
    return line if len(line) <= width else line[: width - 1] + "…"


def remember(console: Console, index: str, kept: str) -> None:
    """Makes an index of what was kept, in place of that of the last time."""
    shutil.rmtree(index, ignore_errors=True)
    run_command(console, "index", "create", index, "--store-text")
    run_command(console, "index", "add", index, kept)


def show_next(console: Console, texts: str, index: str, pairs: list[Pair], paths: dict[str, Path]) -> None:
    """Commands to try, with names that exist."""
    folder = Path(texts).parent
    lines = [
        ("a page on which to ask what is like a text; open http://127.0.0.1:8765/", ["serve", "--index", index]),
        ("every pair, not only who is removed", ["pairs", texts, "-o", str(folder / "pairs.csv")]),
        ("what a threshold of a half removes", ["dedup", texts, "-o", str(folder / "half"), "--threshold", "0.5"]),
        ("why it finds what it finds", ["plan", "--plot", str(folder / "curve.svg")]),
        ("how much it missed here", ["audit", texts]),
    ]
    if pairs:
        kept, removed = (short_path(paths[name]) for name in (pairs[0].kept, pairs[0].removed))
        lines.insert(1, ("what the first two above share", ["compare", kept, removed]))
    console.print("\n[bold]5  Go on[/] from here")
    for why, words in lines:
        console.print(f"   [dim]# {why}[/]")
        console.print(f"   [cyan]{escape(as_typed([command_name(), *words], console.width - 3))}[/]")


def command_name() -> str:
    """The command as this shell finds it."""
    return "minwise" if shutil.which("minwise") else short_path(Path(sys.executable).with_name("minwise"))


def as_typed(words: list[str], width: int) -> str:
    """The command in one line, or in several that a shell reads as one; an option stays with its value."""
    lines = [""]
    for word, before in zip(words, ["", *words], strict=False):
        is_value = before.startswith("-")
        if not is_value and len(lines[-1]) + len(word) + 3 > width:
            lines.append("    ")
        lines[-1] += (" " if lines[-1].strip() else "") + shlex.quote(word)
    return " \\\n   ".join(lines)


if __name__ == "__main__":
    main()
