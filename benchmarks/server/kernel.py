"""Rates of the same queries without a server, one by one and sixteen at a time, in a separate process.

``python -m benchmarks.server.kernel INDEX QUESTIONS``. The difference to the rates of the server is its overhead.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import minwise as mw

# Batch size of a server with as many waiting clients.
TOGETHER = 16


def main() -> None:
    """Measure each batch size twice, the first time as a warm-up, and print the rates."""
    questions = [json.loads(line) for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()]
    with mw.Index.open(sys.argv[1], threads=1) as index:
        found = {f"by_{count}": [rate(index, questions, count) for _ in range(2)][-1] for count in (1, TOGETHER)}
    print(json.dumps(found))


def rate(index: mw.Index, questions: list[str], count: int) -> float:
    """Return the queries per second for a batch size."""
    start = time.perf_counter()
    for first in range(0, len(questions), count):
        index.query_many(questions[first : first + count])
    return len(questions) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
