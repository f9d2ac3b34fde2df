"""Answering: what every run has around it, reading jobs and writing what the tool says to each.

Runs in the peer's environment, so it needs nothing but the standard library.
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
    """Texts, and how they are to be compared.

    Attributes:
        texts: The documents.
        words: Words in a row that make a shingle.
        plain: Whether words are what stands between blanks, since the texts were made that way.
        threshold: Similarity from which on a pair should be reported.
        slots: Slots of a signature.
        bands: Bands, for a tool that leaves them to its user.
        rows: Slots of a band.
        seed: For a tool that takes one.
        way: Which of the tool's ways.
    """

    texts: list[str]
    words: int
    plain: bool
    threshold: float
    slots: int
    bands: int
    rows: int
    seed: int = 1
    way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool says: pairs, or the cluster of each document; or why it can not."""

    pairs: list[tuple[int, int]] | None = None
    clusters: list[int] | None = None
    error: str = ""


def answer_jobs(answer: Callable[[Job], Answer], *, packages: tuple[str, ...]) -> None:
    """Read the jobs, let the tool answer each of them, write answers and versions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", type=Path)
    parser.add_argument("answers", type=Path)
    places = parser.parse_args()
    jobs = [Job(**one) for one in json.loads(places.jobs.read_text(encoding="utf-8"))]
    answers = [asdict(attempt(answer, job)) for job in jobs]
    content = {"answers": answers, "versions": {name: version(name) for name in packages}}
    places.answers.write_text(json.dumps(content), encoding="utf-8")


def attempt(answer: Callable[[Job], Answer], job: Job) -> Answer:
    """Return the answer, or the error that the tool raised: that is a result too."""
    try:
        return answer(job)
    except Exception as error:  # whatever it is, the other jobs go on
        traceback.print_exc(file=sys.stderr)
        return Answer(error=f"{type(error).__name__}: {error}"[:300])
