"""Job: what an engine is asked to do, and what it may use for it."""

from dataclasses import dataclass

from minwise.engines.documents import Corpus
from minwise.engines.work import Work
from minwise.limits import Limits
from minwise.progress import Progress
from minwise.stages.settings import FindSettings

__all__ = ["Job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A corpus, and how it is gone through.

    Attributes:
        corpus: What is read.
        settings: What decides the result.
        limits: How much of the machine may be used.
        work: Where finished pieces are.
        progress: Who is told how far the work is.
    """

    corpus: Corpus
    settings: FindSettings
    limits: Limits
    work: Work
    progress: Progress
