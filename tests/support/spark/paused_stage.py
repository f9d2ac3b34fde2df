"""A stage that stops in its middle and waits there, so that whoever kills it need not be quick."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minwise.spark.stage_store import StageStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["PausedStage"]

GO = "go"


class PausedStage:
    """A stage whose first tasks come to their end, while all others wait after their first rows.

    Attributes:
        stage: Which one.
        folder: Where tasks say that they wait, and are told to go on.
        passing: How many tasks do not wait.
    """

    def __init__(self, stage: str, folder: Path, passing: int = 0) -> None:
        self.stage, self.folder, self.passing = stage, folder, passing
        folder.mkdir(exist_ok=True)

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return len(list(self.folder.iterdir()))

    def go(self) -> None:
        """Lets them go on; from now on nobody waits."""
        (self.folder / GO).touch()

    def run(self) -> "Callable[..., DataFrame]":
        """What has to stand in for ``StageStore.run``."""
        run, stage, wait = StageStore.run, self.stage, _waiting(str(self.folder), self.passing)

        def run_held(stages: StageStore, name: str, make: "Callable[[], DataFrame]", **options: Any) -> "DataFrame":  # noqa: ANN401
            def make_held() -> "DataFrame":
                made = make()
                return made.mapInArrow(wait, made.schema)

            return run(stages, name, make_held if name == stage else make, **options)

        return run_held


def _waiting(folder: str, passing: int) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """What tasks do. It goes to them whole, because tests cannot be imported there."""

    def wait(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from islice(batches, 1)
        if context.partitionId() >= passing:
            (Path(folder) / str(os.getpid())).touch()
            while not (Path(folder) / GO).exists():
                time.sleep(0.01)
        yield from batches

    return wait
