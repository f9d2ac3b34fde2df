"""A stage whose tasks pause in the middle, so that a test can kill a process there without a race."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minwise.spark.stage_store import StageFiles, StageStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["PausedStage"]

RESUME = "resume"


class PausedStage:
    """Stage whose first tasks complete, while all others pause after their first rows.

    Attributes:
        stage: Name of the stage.
        folder: Directory in which tasks report that they pause, and find out that they may resume.
        passing: Number of tasks that do not pause.
    """

    def __init__(self, stage: str, folder: Path, passing: int = 0) -> None:
        self.stage, self.folder, self.passing = stage, folder, passing
        folder.mkdir(exist_ok=True)

    @property
    def paused(self) -> int:
        """Number of paused tasks."""
        return len(list(self.folder.iterdir()))

    def resume(self) -> None:
        """Resume the tasks; no later task pauses."""
        (self.folder / RESUME).touch()

    def run_tasks(self) -> Callable[..., StageFiles]:
        """Return a replacement of ``StageStore.run_tasks``, which makes stages of files."""
        return self._paused(StageStore.run_tasks)

    def run(self) -> "Callable[..., DataFrame]":
        """Return a replacement of ``StageStore.run``, which makes stages of rows."""
        return self._paused(StageStore.run)

    def _paused(self, run: Callable[..., Any]) -> Callable[..., Any]:
        stage, pause = self.stage, _pausing(str(self.folder), self.passing)

        def run_paused(stages: StageStore, name: str, make: "Callable[[], DataFrame]", **options: Any) -> Any:  # noqa: ANN401
            def make_paused() -> "DataFrame":
                made = make()
                return made.mapInArrow(pause, made.schema)

            return run(stages, name, make_paused if name == stage else make, **options)

        return run_paused


def _pausing(folder: str, passing: int) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Return the function of the tasks. It is pickled by value, because executors cannot import tests."""

    def pause(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from islice(batches, 1)
        if context.partitionId() >= passing:
            (Path(folder) / str(os.getpid())).touch()
            while not (Path(folder) / RESUME).exists():
                time.sleep(0.01)
        yield from batches

    return pause
