"""Common parts of the runs of tools: reading jobs and writing the answers.

This module runs in the environments of the tools and needs only the standard library.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Texts and the settings of their comparison.

    Attributes:
        texts: The documents.
        words: Words per shingle.
        plain: Whether the texts are words separated by blanks and must be split only there.
        threshold: Minimum similarity of reported pairs.
        slots: Slots of a signature.
        bands: Bands, for a tool that does not choose them itself.
        rows: Slots of a band.
        seed: Seed, for a tool that takes one.
        mode: Mode of the tool.
    """

    texts: list[str]
    words: int
    plain: bool
    threshold: float
    slots: int
    bands: int
    rows: int
    seed: int = 1
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of a tool: pairs, or the cluster of each document, or an error."""

    pairs: list[tuple[int, int]] | None = None
    clusters: list[int] | None = None
    error: str = ""


def answer_jobs(answer: Callable[[Job], Answer], *, packages: tuple[str, ...]) -> None:
    """Read the jobs, run the tool on each of them, and write answers and versions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", type=Path)
    parser.add_argument("answers", type=Path)
    paths = parser.parse_args()
    jobs = [Job(**job) for job in json.loads(paths.jobs.read_text(encoding="utf-8"))]
    answers = [asdict(attempt(answer, job)) for job in jobs]
    content = {"answers": answers, "versions": {name: version(name) for name in packages}}
    paths.answers.write_text(json.dumps(content), encoding="utf-8")


def attempt(answer: Callable[[Job], Answer], job: Job) -> Answer:
    """Return the answer, or an answer with the error that the tool raised."""
    try:
        return answer(job)
    except Exception as error:  # any failure must not stop the other jobs
        traceback.print_exc(file=sys.stderr)
        return Answer(error=f"{type(error).__name__}: {error}"[:300])
