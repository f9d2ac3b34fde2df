"""The local engine: one machine, larger than memory, resumable."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.progress import Progress
from minwise.search.bands import pack
from minwise.search.documents import Documents
from minwise.search.engine import Found, Job, Staging
from minwise.search.exact_join import propose_similar
from minwise.search.first_pass import read_documents
from minwise.search.spilled_sets import SpilledSets
from minwise.search.verification import Search

__all__ = ["LocalEngine"]


class LocalEngine:
    """All stages in this process."""

    def find(self, job: Job, *, for_report: bool = False) -> Found:
        """Finds every pair of near-duplicates, as far as the plan goes."""
        read_documents(job)
        documents = Documents(job.corpus, job.work)
        pa.default_memory_pool().release_unused()
        search = Search(job, documents, documents.keep_order(job.settings.keep), for_report=for_report)
        copies = search.collapse_copies()
        if not job.work.has("verified"):
            if job.settings.exact:
                search.spill_sets()
                propose_similar(job, search.order, documents.protected, search.floor)
            else:
                search.propose_candidates()
                search.spill_sets()
            search.verify_candidates()
        return search.found(copies, self)

    def similarities(self, found: Found, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The exact similarity of documents that are in candidate pairs."""
        return (
            SpilledSets(found.work, found.order, room=0).similar(pack(low, high), 0.0, found.limits.threads).similarity
        )

    def copy_kept(self, found: Found, keep: NDArray[np.bool_], staging: Staging, progress: Progress) -> int:
        """Copies the kept rows of several sources at a time."""
        documents, corpus = found.documents, found.documents.corpus
        numbers = range(corpus.against, len(corpus.sources))
        folder = staging.folder / "kept"
        folder.mkdir()

        def copy(number: int) -> tuple[int, int]:
            mine = keep[documents.within_input(number)]
            return len(mine), corpus.sources[number].copy_kept(mine, folder, corpus.root)

        written = 0
        pool = ThreadPoolExecutor(found.limits.writers, thread_name_prefix="minwise-write")
        try:
            with progress.stage("write", len(keep), "documents") as stage:
                for rows, kept in pool.map(copy, numbers):
                    written += kept
                    stage.advance(rows)
        finally:
            pool.shutdown(cancel_futures=True)  # a writer that went on would bring back what is cleared away
        return written
