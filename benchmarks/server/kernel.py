"""Kernel: a process of its own that asks an index for the same texts without a server, one by one and many at a time.

``python -m benchmarks.server.kernel INDEX QUESTIONS``. What a server adds is what lies between this and its own rates.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import minwise as mw

# As many as a server works on at a time when as many clients wait.
TOGETHER = 16


def main() -> None:
    """Ask twice each way, the first time to warm up, and print the rates."""
    questions = [json.loads(line) for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()]
    with mw.Index.open(sys.argv[1], threads=1) as index:
        found = {f"by_{count}": [rate(index, questions, count) for _ in range(2)][-1] for count in (1, TOGETHER)}
    print(json.dumps(found))


def rate(index: mw.Index, questions: list[str], count: int) -> float:
    """Return how many texts are answered in a second when so many are asked for at a time."""
    start = time.perf_counter()
    for first in range(0, len(questions), count):
        index.query_many(questions[first : first + count])
    return len(questions) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
