"""Lines of text in Japanese, Russian and Arabic from distribution packages.

Manual pages, handbooks, help pages and translation catalogues are read in the same way: tags are removed, the rest is
split at line ends and NUL bytes, and a line is kept if most of its letters belong to the script of the language. This
excludes English pages that were never translated and the binary part of catalogues.
"""

from __future__ import annotations

import gzip
import html
import random
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MIN_LETTERS = 10  # shorter lines are labels
DOCUMENT_BYTES = 5_000
TAG = re.compile(r"<[^<>]*>")
LATIN = re.compile(r"[A-Za-z]")
NOT_TEXT = (".png", ".jpg", ".svg", ".ttf", ".eot", ".woff", ".woff2", ".pdf", ".js", ".css", ".xcd", ".ods")


@dataclass(frozen=True, slots=True)
class Language:
    """File name code, letters and packages of a language."""

    code: str
    letters: re.Pattern[str]
    packages: tuple[str, ...]


LANGUAGES = {
    "japanese": Language(
        "ja",
        re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"),
        (
            "manpages-ja",
            "libreoffice-help-ja",
            "debian-reference-ja",
            "gimp-help-ja",
            "debian-handbook",
            "installation-guide-amd64",
        ),
    ),
    "russian": Language(
        "ru",
        re.compile(r"[\u0400-\u04ff]"),
        ("manpages-ru", "libreoffice-help-ru", "gimp-help-ru", "debian-handbook", "installation-guide-amd64"),
    ),
    "arabic": Language(
        "ar",
        re.compile(r"[\u0600-\u06ff]"),
        ("debian-handbook", "libreoffice-l10n-ar", "mediawiki", "wordpress-l10n", "vlc-l10n"),
    ),
}


def collect_lines(name: str, cache: Path) -> tuple[list[str], list[str]]:
    """Return the distinct lines of a language, in package order, and the package files they come from."""
    language = LANGUAGES[name]
    lines: dict[str, None] = {}
    archives = [path for package in language.packages if (path := fetch_package(package, cache))]
    for archive in archives:
        for data in language_files(archive, language.code):
            lines.update(dict.fromkeys(language_lines(data, language.letters)))
    return list(lines), [archive.name for archive in archives]


def fetch_package(package: str, cache: Path) -> Path | None:
    """Return the archive of a package, downloaded once, or None if it is not available."""
    cache.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(cache.glob(f"{package}_*.deb"))):
        try:
            subprocess.run(["apt-get", "download", "-qq", package], cwd=cache, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            print(f"package {package} is not available: skipped")
        found = sorted(cache.glob(f"{package}_*.deb"))
    return found[0] if found else None


def language_files(archive: Path, code: str) -> Iterator[bytes]:
    """Yield the contents of the files of a package in a language."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as unpack:
        assert unpack.stdout is not None
        yield from tar_files(unpack.stdout, code, everything=f"-{code}_" in archive.name)


def tar_files(stream: IO[bytes], code: str, *, everything: bool) -> Iterator[bytes]:
    """Yield the members of a tar stream in a language, decompressed."""
    marked = re.compile(rf"[/._-]{code}([/._-]|$)")
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            wanted = member.isfile() and (everything or marked.search(member.name))
            if wanted and not member.name.endswith(NOT_TEXT) and (file := tar.extractfile(member)):
                data = file.read()
                yield gzip.decompress(data) if member.name.endswith(".gz") else data


def language_lines(data: bytes, letters: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines of a file whose letters mostly belong to the script."""
    text = html.unescape(TAG.sub(" ", data.decode("utf-8", "replace")))
    for line in re.split(r"[\0\n]+", text):
        own = len(letters.findall(line))
        if own >= MIN_LETTERS and own > len(LATIN.findall(line)) and "\ufffd" not in line:
            yield " ".join(line.split())


def repeat_documents(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield an endless sequence of documents of about 5 KB; after the first pass the lines are shuffled."""
    turn = 0
    while lines:
        order = list(lines)
        if turn:
            random.Random(turn).shuffle(order)
        for number, text in enumerate(join_lines(order)):
            yield f"{turn}:{number}", text
        turn += 1


def join_lines(lines: list[str]) -> Iterator[str]:
    """Yield lines joined into texts of at least `DOCUMENT_BYTES`; the last may be shorter."""
    held: list[str] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line.encode()) + 1
        if size >= DOCUMENT_BYTES:
            yield "\n".join(held)
            held, size = [], 0
    if held:
        yield "\n".join(held)
