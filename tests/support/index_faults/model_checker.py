"""Model checker of an index: random steps, compared with the oracle in plain Python, by a process that is killed.

In each round a child runs the steps of the round and reports every result; it is killed in one of them, at a call of a
Python or C function or at a point in time. The parent knows the expected result of each step. After a kill the index
must hold the state before or after the unfinished step. `python -m support.index_faults.model_checker` runs rounds
and prints the counts.
"""

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minwise as mw
from minwise.errors import InputError
from minwise.index import Answer, OpenMode
from support.index_faults.children import Channel, Child, fast_folder, start
from support.index_faults.workload import set_constants
from support.index_oracle import Expected, Metadata, Oracle, RefusedError, storing

__all__ = ["ModelChecker", "run_steps"]

# Little data creates many segments.
CONSTANTS = {"minwise.index.writer.FLUSH_DOCUMENTS": 5}
# Rounds after which an index with other settings is used.
ROUNDS_PER_INDEX = 10
# Above this number of documents, more are removed than added.
MANY_DOCUMENTS = 60
# Calls of functions within which a child is killed; a step has between ten and some thousands.
MAX_CALLS = 1500
# Share of kills at a point in time.
TIMED = 0.3
WEIGHTS = {
    "add": 20, "add_near_copies": 2, "add_unique": 12, "remove": 12, "query": 20, "query_many": 5, "get": 10,
    "newest": 3, "flush": 4, "compact": 2, "reopen": 3, "verify": 2, "backup": 1,
}  # fmt: skip
WORDS = "abcdefg"
TEXTS = ("", " … ", "A, b; C.", "a b c", "c b a a")
IDS: tuple[str | int, ...] = (*range(-1, 12), *"01234567", "x", "y", "ü", "-1", "007")
METADATA: tuple[Metadata, ...] = (
    None, None, {}, {"lang": "en"}, {"lang": "de"}, {"lang": "en", "n": 1}, {"n": 2, "deep": {"a": [1, None]}},
)  # fmt: skip
FILTERS: tuple[Metadata, ...] = (
    None, None, None, {}, {"lang": "en"}, {"n": 1, "lang": "en"}, {"deep": {"a": [1, None]}}, {"x": 0},
)  # fmt: skip
REFUSED = "refused"
# Files of an index other than segments.
FILES = {"index.db", "index.db-wal", "index.db-shm", "head", "writer.lock"}

Step = dict[str, Any]


# The child


def run_steps(channel: Channel) -> None:
    """Run the steps of a job, and report the result of each."""
    job = channel.receive()
    set_constants(CONSTANTS)
    handles = Handles(Path(job["path"]))
    for number, step in enumerate(job["steps"]):
        if number == job["kill_step"]:
            kill_at_call(job["kill_call"])
        channel.send({"done": number, "result": handles.run(step)})
    handles.close()


def kill_at_call(call: int) -> None:
    """Kill this process at a call of a Python or C function from now on."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


class Handles:
    """An index that is open for writing and for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        """Open both."""
        self.writer, self.reader = mw.Index.open(self.path, "w"), mw.Index.open(self.path)

    def close(self) -> None:
        """Close both."""
        self.writer.close()
        self.reader.close()

    def run(self, step: Step) -> Any:  # noqa: ANN401 - any JSON
        """Run a step, and return its result as a JSON value."""
        arguments = {name: value for name, value in step.items() if name not in ("kind", "by")}
        index = self.reader if step.get("by") == "reader" else self.writer
        try:
            return getattr(self, f"run_{step['kind']}")(index, **arguments)
        except InputError:
            return REFUSED

    def run_add(self, index: mw.Index, **arguments: Any) -> Any:  # noqa: ANN401
        """Return the counts."""
        return list(index.add(**arguments))

    run_add_near_copies = run_add

    def run_add_unique(self, index: mw.Index, **arguments: Any) -> Any:  # noqa: ANN401
        """Return the decisions."""
        return [list(decision[:5]) for decision in index.add_unique(**arguments)]

    def run_remove(self, index: mw.Index, ids: list[Any]) -> int:
        """Return the number of removed documents."""
        return index.remove(ids)

    def run_query(self, index: mw.Index, **arguments: Any) -> Any:  # noqa: ANN401
        """Return the answer."""
        return as_json(index.query(**arguments))

    def run_query_many(self, index: mw.Index, texts: list[str]) -> Any:  # noqa: ANN401
        """Return the answers."""
        return [as_json(answer) for answer in index.query_many(texts)]

    def run_get(self, index: mw.Index, id: Any) -> Any:  # noqa: A002, ANN401
        """Return a document."""
        assert (id in index) or index.get(id) is None
        document = index.get(id)
        return [document.id, document.metadata, document.text]

    def run_newest(self, index: mw.Index, limit: int) -> Any:  # noqa: ANN401
        """Return the ids of the newest documents, and the number of all."""
        return [[document.id for document in index.newest(limit).documents], len(index)]

    def run_flush(self, index: mw.Index) -> None:
        """Flush."""
        index.flush()

    def run_compact(self, index: mw.Index) -> None:
        """Compact."""
        index.compact()

    def run_reopen(self, _: mw.Index) -> None:
        """Close and open both."""
        self.close()
        self.open()

    def run_verify(self, index: mw.Index) -> list[str]:
        """Return the damage, which is none."""
        return [str(damage) for damage in index.verify()]

    def run_backup(self, index: mw.Index, path: str) -> Any:  # noqa: ANN401
        """Return the size and the damage of a copy."""
        index.backup(path)
        with mw.Index.open(path) as copy:
            found = [len(copy), [str(damage) for damage in copy.verify()]]
        shutil.rmtree(path)
        return found


def as_json(answer: Answer) -> list[Any]:
    """Return the hits of an answer, and whether it is truncated."""
    return [[[hit.id, hit.similarity, hit.metadata] for hit in answer], answer.truncated]


# The parent


@dataclass
class Planned:
    """A step, its expected result, and the state of the oracle before it."""

    step: Step
    expected: Any
    before: tuple[Any, ...]


@dataclass
class ModelChecker:
    """An index, its oracle, and counts of what was checked.

    Attributes:
        folder: A directory for the index.
        draw: The source of chance.
        counts: Steps by kind, ``steps``, ``kills``, and ``cut short`` for kills within a step.
    """

    folder: Path
    draw: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    _rounds: int = 0
    # Moving average of the duration of a step.
    _seconds: float = 0.005

    def summary(self) -> str:
        """Return the counts in one line."""
        kinds = ", ".join(f"{kind} {self.counts[kind]}" for kind in WEIGHTS)
        kills = f"{self.counts['kills']} kills ({self.counts['cut short']} within a step)"
        return f"index model checker: {self.counts['steps']} steps, {kills}, {self.counts['indexes']} indexes; {kinds}"

    def round(self, steps: int) -> None:
        """Run steps in a child that is killed, and check every result and the index afterwards."""
        if self._rounds % ROUNDS_PER_INDEX == 0:
            self._new_index()
        self._rounds += 1
        planned = [self._plan() for _ in range(steps)]
        last = self._saved()
        timed = self.draw.random() < TIMED
        kill_step = -1 if timed else self.draw.randrange(steps // 2, steps)
        kill = {"kill_step": kill_step, "kill_call": self.draw.randrange(1, MAX_CALLS)}
        child = start(run_steps, {"path": str(self.path), "steps": [entry.step for entry in planned], **kill})
        started = time.monotonic()
        moment = started + self.draw.uniform(0.5, 1) * self._seconds * steps if timed else None
        done = self._listen(child, planned, moment)
        killed = child.wait() == -signal.SIGKILL
        self._seconds += 0.2 * ((time.monotonic() - started) / (1 + done) - self._seconds)
        self.counts.update(kills=killed, steps=done, **{"cut short": killed and done < steps})
        self._reopen([*(entry.before for entry in planned), last][done : done + 1 + killed])

    def _new_index(self) -> None:
        """Create an index with other settings, and its oracle."""
        draw, self.path = self.draw, self.folder / "index.mw"
        shutil.rmtree(self.path, ignore_errors=True)
        bands, rows = draw.choice(((1, 1), (6, 1), (8, 2), (12, 2)))
        max_bucket = draw.choice((16, 2000))
        settings: Any = {
            "bands": bands, "rows": rows, "max_bucket": max_bucket, "seed": draw.choice((0, 1, 2**64 - 1)),
            "shingle": draw.choice(("word:1", "word:1", "word:2", "char:3", "byte:2")), "bag": draw.random() < 0.5,
            "scheme": draw.choice(("fast", "minhash")), "threshold": draw.choice((0.2, 0.5, 0.8)),
            **storing(draw.choice(("shingles", "text", "sketch"))),
        }  # fmt: skip
        index = mw.Index.create(self.path, **settings)
        index.close()
        self.oracle = Oracle(index, max_bucket)
        self.counts["indexes"] += 1

    def _saved(self) -> tuple[Any, ...]:
        return dict(self.oracle.documents), self.oracle.added

    def _restore(self, state: tuple[Any, ...]) -> None:
        documents, added = state
        self.oracle.documents, self.oracle.added = dict(documents), added

    def _plan(self) -> Planned:
        """Draw a step, and apply it to the oracle."""
        kind = self.draw.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        before = self._saved()
        arguments, expect = getattr(self, f"_draw_{kind}", self._draw_nothing)()
        try:
            expected = expect()
        except RefusedError:
            expected = REFUSED
        return Planned({"kind": kind, **arguments}, expected, before)

    def _draw_nothing(self) -> tuple[Step, Callable[[], Any]]:
        return {}, lambda: None

    def _text(self) -> str:
        draw = self.draw
        if draw.random() < 0.15:
            return draw.choice(TEXTS)
        if self.oracle.documents and draw.random() < 0.4:
            stored = draw.choice(list(self.oracle.documents.values())).text
            return " ".join([stored, *draw.choices(WORDS, k=draw.randrange(2))])[:60]
        return " ".join(draw.choices(WORDS, k=draw.randrange(8)))

    def _batch(self, most: int) -> dict[str, Any]:
        count = self.draw.choice((1, 1, self.draw.randrange(most)))
        return {
            "ids": self.draw.choices(IDS, k=count),
            "texts": [self._text() for _ in range(count)],
            "metadata": self.draw.choices(METADATA, k=count),
            "on_duplicate_id": self.draw.choice(("error", "skip", "replace")),
        }

    def _draw_add(self) -> tuple[Step, Callable[[], Any]]:
        batch = self._batch(9)
        return batch, lambda: list(self.oracle.add(*batch.values()))

    def _draw_add_near_copies(self) -> tuple[Step, Callable[[], Any]]:
        count, text, first = self.draw.choice((9, 30)), self._text(), self.oracle.added
        texts = [text if turn % 3 else f"{text} {self.draw.choice(WORDS)}" for turn in range(count)]
        ids = [f"copy {first + turn}" for turn in range(count)]
        batch: Step = {"ids": ids, "texts": texts, "metadata": [None] * count, "on_duplicate_id": "replace"}
        return batch, lambda: list(self.oracle.add(*batch.values()))

    def _draw_add_unique(self) -> tuple[Step, Callable[[], Any]]:
        batch = self._batch(6)
        return batch, lambda: [list(decision) for decision in self.oracle.add_unique(*batch.values())]

    def _draw_remove(self) -> tuple[Step, Callable[[], Any]]:
        ids: list[Any] = self.draw.choices(IDS, k=self.draw.randrange(4))
        if len(self.oracle.documents) > MANY_DOCUMENTS or self.draw.random() < 0.1:
            share = self.draw.choice((1, 2, 2, 3))
            ids = list(self.oracle.documents)[self.draw.randrange(share) :: share]
        return {"ids": ids}, lambda: self.oracle.remove(ids)

    def _by(self) -> Step:
        return {"by": self.draw.choice(("writer", "reader"))}

    def _draw_query(self) -> tuple[Step, Callable[[], Any]]:
        planned, above = self.oracle.index.plan.threshold, self.draw.choice((None, None, 0.0, 0.3, 1.0))
        threshold = None if above is None else planned + above * (1 - planned)
        top, where, text = self.draw.choice((1, 3, 10, 40)), self.draw.choice(FILTERS), self._text()
        step = {"text": text, "threshold": threshold, "top": top, "where": where, **self._by()}
        return step, lambda: self._expected(text, planned if threshold is None else threshold, top, where)

    def _draw_query_many(self) -> tuple[Step, Callable[[], Any]]:
        texts, planned = [self._text() for _ in range(self.draw.randrange(5))], self.oracle.index.plan.threshold
        return {"texts": texts, **self._by()}, lambda: [self._expected(text, planned, 10, None) for text in texts]

    def _expected(self, text: str, threshold: float, top: int, where: Metadata) -> Any:  # noqa: ANN401
        """Return an expected answer."""
        return expected_json(self.oracle.query(text, threshold, top, where))

    def _draw_get(self) -> tuple[Step, Callable[[], Any]]:
        name = self.draw.choice(IDS)

        def expect() -> Any:  # noqa: ANN401
            stored = self.oracle.documents.get(str(name))
            if stored is None:
                raise RefusedError
            return [stored.id, stored.metadata, stored.text if self.oracle.index.store == "text" else None]

        return {"id": name, **self._by()}, expect

    def _draw_newest(self) -> tuple[Step, Callable[[], Any]]:
        limit = self.draw.choice((1, 5, 1000))
        by_number = sorted(self.oracle.documents.values(), key=lambda document: -document.number)
        expected = [[document.id for document in by_number[:limit]], len(by_number)]
        return {"limit": limit, **self._by()}, lambda: expected

    def _draw_compact(self) -> tuple[Step, Callable[[], Any]]:
        return {}, lambda: None

    def _draw_verify(self) -> tuple[Step, Callable[[], Any]]:
        return self._by(), list[str]

    def _draw_backup(self) -> tuple[Step, Callable[[], Any]]:
        path = self.folder / f"copy {self.draw.randrange(10**9)}.mw"
        return {"path": str(path), **self._by()}, lambda: [len(self.oracle.documents), []]

    def _listen(self, child: Child, planned: list[Planned], moment: float | None) -> int:
        """Compare the results of a child until it ends; return the number of steps that it finished."""
        done = 0
        while True:
            try:
                left = None if moment is None else moment - time.monotonic()
                event = child.receive() if left is None else child.receive(max(0.0, left))
            except TimeoutError:
                assert moment is not None, "the child hangs"
                child.kill()
                moment = None
                continue
            except EOFError:
                return done
            entry = planned[done]
            assert event["done"] == done
            assert event["result"] == entry.expected, (entry.step, event["result"], entry.expected)
            self.counts[entry.step["kind"]] += 1
            done += 1

    def _reopen(self, states: list[tuple[Any, ...]]) -> None:
        """Check that the index holds one of the states, and continue with it; a writer deletes all leftovers."""
        modes: list[list[OpenMode]] = [["r"], ["w"], ["r", "w"]]
        for mode in self.draw.choice(modes):
            with mw.Index.open(self.path, mode) as index:
                states = [state for state in states if self._state_of(index) == self._expected_state(state)][:1]
                assert states != [], (mode, self._state_of(index))
                self._restore(states[0])
                self._check_answers(index)
                assert index.verify() == []
                if mode == "w":
                    used = {segment["file"] for segment in index.stats()["segments"]}
                    assert {path.name for path in self.path.iterdir()} - used - FILES == set()
        for leftover in self.folder.iterdir():
            if leftover != self.path:
                shutil.rmtree(leftover)

    def _state_of(self, index: mw.Index) -> list[Any]:
        return [(document.id, document.metadata, document.text) for document in index.newest(10_000).documents]

    def _expected_state(self, state: tuple[Any, ...]) -> list[Any]:
        documents = sorted(state[0].values(), key=lambda document: -document.number)
        with_text = self.oracle.index.store == "text"
        return [(document.id, document.metadata, document.text if with_text else None) for document in documents]

    def _check_answers(self, index: mw.Index) -> None:
        """Check ids, and the answer to every text."""
        texts = sorted({document.text for document in self.oracle.documents.values()})
        for name in (*IDS, *(document.id for document in self.oracle.documents.values())):
            assert (name in index) == (str(name) in self.oracle.documents)
        for text, answer in zip(texts, index.query_many(texts), strict=True):
            expected = self._expected(text, index.plan.threshold, 10, None)
            assert as_json(answer) == expected, (text, answer, expected)


def expected_json(expected: Expected) -> list[Any]:
    """Return an expected answer as a child reports it."""
    return [[list(hit) for hit in expected.hits], expected.truncated]


def main(rounds: int, steps: int, seed: int) -> None:
    """Run rounds, and print the counts."""
    with fast_folder() as folder:
        checker = ModelChecker(folder, random.Random(seed))
        started = time.monotonic()
        for _ in range(rounds):
            checker.round(steps)
        print(f"{checker.summary()}; {time.monotonic() - started:.0f} s, seed {seed}")  # noqa: T201 - the output


if __name__ == "__main__":
    from support.index_faults import model_checker  # children import the module by this name

    model_checker.main(*map(int, sys.argv[1:4]))
