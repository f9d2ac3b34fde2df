"""Weighted search: elements that many documents have count little.

With ``discount="common"`` the first pass computes no signatures. The sets of all distinct documents are written to the
work directory, as for an exact join. From these files elements are counted, then band keys are computed from weighted
signatures. Candidates, verification and clusters are those of any search, with weighted similarities.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.search.bands import Bander, KeyBlock, key_bytes
from minwise.search.documents import SearchJob
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings
from minwise.sketches.frequencies import FrequencyTable, table_bits
from minwise.sketches.planning import plan as make_plan

__all__ = [
    "EQUAL",
    "band_weighted",
    "count_frequencies",
    "has_frequencies",
    "key_pieces",
    "read_frequencies",
    "search_weights",
    "without_bands",
    "write_frequencies",
]

# Names of the table of frequencies, and of the files of band keys.
FREQUENCIES, KEYS = "frequencies", "keys-"

# Frequencies with which all elements weigh the same.
EQUAL = FrequencyTable(np.zeros(2, dtype=np.uint32), 1, {})


def without_bands(job: SearchJob) -> SearchJob:
    """Return the job of a first pass that computes one slot per document, which no later stage reads."""
    settings = job.settings
    plan = make_plan(settings.plan.threshold, bands=1, rows=1)
    return replace(job, settings=replace(settings, plan=plan))


def count_frequencies(job: SearchJob) -> None:
    """Count in how many distinct documents each element is, unless the settings give frequencies."""
    if has_frequencies(job.work) or job.settings.discount == "none":
        return
    given = job.settings.frequencies
    write_frequencies(job.work, _count(job) if given is None else given)


def has_frequencies(work: WorkDirectory) -> bool:
    """Return whether the frequencies of a search are known."""
    return work.has(FREQUENCIES)


def write_frequencies(work: WorkDirectory, table: FrequencyTable) -> None:
    """Write the frequencies of a search."""
    work.write(FREQUENCIES, {"counts": table.counts}, documents=table.documents, elements=table.elements)


def _count(job: SearchJob) -> FrequencyTable:
    files = [job.work.open(name) for name in job.work.names("sets-")]
    bits = table_bits(sum(file.length("elements") for file in files))
    table = _kernel.Frequencies(bits, job.settings.holds_weights)
    documents = sum(file.length("offsets") - 1 for file in files)
    with job.progress.stage("count elements", documents, "documents") as stage:
        for file in files:
            table.add(file.map("elements"), job.limits.threads)
            stage.advance(file.length("offsets") - 1)
    return FrequencyTable(table.counts(), documents, job.settings.element_settings)


def read_frequencies(work: WorkDirectory) -> FrequencyTable:
    """Return the frequencies of a search."""
    file = work.open(FREQUENCIES)
    return FrequencyTable(file.read("counts"), file.header["documents"], file.header["elements"])


def search_weights(work: WorkDirectory, settings: SearchSettings, limits: RunLimits) -> "_kernel.Weights | None":
    """Return the weights of elements of a search; None if all weigh the same."""
    if not settings.weighted:
        return None
    table = EQUAL if settings.discount == "none" else read_frequencies(work)
    return table.weights(limits.threads, settings.factors, held=settings.holds_weights)


def band_weighted(job: SearchJob) -> None:
    """Write the band keys of the weighted signature of each set in the work directory."""
    work, names = job.work, job.work.names("sets-")
    bander = Bander(job.settings, search_weights(work, job.settings, job.limits))
    with job.progress.stage("sketch", len(names), "files") as stage:
        for name in names:
            keys = name.replace("sets-", KEYS)
            if not work.has(keys):
                file = work.open(name)
                offsets = file.read("offsets").astype(np.int64)
                _write_keys(job, bander, keys, offsets, file.map("elements"))
            stage.advance(1)


def _write_keys(
    job: SearchJob, bander: Bander, name: str, offsets: NDArray[np.int64], elements: NDArray[np.uint64]
) -> None:
    """Write the keys of the sets of a file, block by block; the file of the name comes last and marks the others."""
    sets, most = len(offsets) - 1, _block_sets(job)
    for number, first in enumerate(range(0, sets, most)):
        end = min(sets, first + most)
        block = KeyBlock.allocate(job.settings, end - first)
        bander.band_arrays(offsets[first : end + 1], elements, block, job.limits.threads)
        job.work.write(f"block-{name}-{number:05}", {f"band{band}": row for band, row in enumerate(block.keys)})
    job.work.write(name, {}, blocks=-(-sets // most))


def _block_sets(job: SearchJob) -> int:
    return max(1024, job.limits.memory // 16 // (key_bytes(job.settings) + 64))


def key_pieces(work: WorkDirectory, band: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the keys of a band, in the order of the sets."""
    for name in work.names(KEYS):
        for number in range(work.open(name).header["blocks"]):
            yield work.open(f"block-{name}-{number:05}").read(f"band{band}")
