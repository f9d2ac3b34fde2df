"""Markdown tables of the newest records, which ``python -m docs.tools`` writes into the pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from operator import itemgetter
from statistics import median

from benchmarks.linkage.filters import rows as filter_rows
from benchmarks.markdown import Record, machine_and_date, table
from benchmarks.peers.markdown_table import peers_table
from benchmarks.quality.markdown_tables import COMPARED, readme_rows, short_rows
from benchmarks.record_files import FOLDER
from benchmarks.spark.markdown_tables import engines_table
from benchmarks.speed.markdown_table import rows as speed_rows

# A load above what one benchmark on two cores causes by itself.
BUSY_LOAD = 4


def newest_tables(names: Iterable[str]) -> dict[str, str]:
    """Return tables by name, each made from the newest record."""
    return {name: SECTIONS[name](newest_record(name)) for name in names}


def newest_record(name: str) -> Record:
    """Return the record of a benchmark that was finished last."""
    records: list[Record] = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob(f"{name}-*.json")]
    return max(records, key=itemgetter("finished"))


def speed_table(record: Record) -> str:
    """Return the rates of text → signatures of minwise and of the peers."""
    versions = record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in ("datasketch", "rensa"))
    columns = ["corpus", "engine", "MB/s, one core", "MB/s, two cores", "minwise speedup, one core", "two cores"]
    shown = table(columns, list(speed_rows(record)))
    how = f"256 slots, speedup over peers on the first 128 MB; {machine_and_date(record)}"
    return f"{shown}\n\n{how}; {peers}, pyarrow {versions['pyarrow']}."


def scale_table(record: Record) -> str:
    """Return time, memory and result of `minwise dedup` on millions of documents."""
    names = {
        "size": "a tenth near-duplicates",
        "memory": "a tenth near-duplicates, five times the memory limit",
        "copies": "copies of one page",
        "bucket": "constructed to share a bucket",
    }
    rows = []
    for one in record["measurements"]:
        run, kept = one["run"], one["answer"]["kept"]
        rate = f"{one['documents'] / run['seconds']:,.0f}"
        sizes = [one["memory"], f"{run['peak_bytes'] / 1e6:,.0f} MB"]
        rows.append([f"{one['documents']:,}", names[one["name"]], f"{run['seconds']:.0f}", rate, *sizes, f"{kept:,}"])
    columns = ["documents of 300 bytes", "corpus", "seconds", "documents/s", "`--memory`", "peak", "kept"]
    rounds = record["settings"].get("rounds", 1)
    best = f", best of {rounds} rounds" if rounds > 1 else ""
    return f"{table(columns, rows)}\n\nWith `--work`, two cores{best}; {machine_and_date(record)}."


def bounds_table(record: Record) -> str:
    """Return the time of each stage of a run and its lower bounds."""
    rows = []
    for stage in record["stages"]:
        bounds = ", ".join(f"{name} {value:.2f}" for name, value in stage["bounds"].items())
        rows.append([stage["stage"], f"{stage['seconds']:.2f}", bounds, f"{stage['times']:.1f}"])
    shown = table(["stage", "seconds", "lower bounds in seconds", "ratio"], rows)
    counted = ""
    if "pairs" in record:
        candidates, verified = (record["pairs"][name] / 1e6 for name in ("candidates", "verified"))
        counted = f", {candidates:.1f} million candidates, of which {verified:.1f} reach the threshold"
    return f"{shown}\n\n{record['corpus']['documents']:,} passages{counted}; {machine_and_date(record)}."


def exact_table(record: Record) -> str:
    """Return the exact join, compared with the bands and with another join of the same sets."""
    rows = []
    for part, names in (("documents", {"bands": "`minwise pairs`", "exact": "`minwise pairs --exact`"}), ("sets", {})):
        for name, runs in record[part].items():
            best = min(runs, key=lambda run: float(run["seconds"]))
            peak = max(run["peak_bytes"] for run in runs)
            cells = [f"{best['seconds']:.1f}", f"{best['pairs']:,}", f"{peak / 1e6:,.0f}"]
            rows.append([f"{record['settings'][part]:,} {part}", names.get(name, name), *cells])
    shown = table(["input", "engine", "seconds", "pairs", "peak MB"], rows)
    peer = record["sets"]["SetSimilaritySearch"][0]["version"]
    return f"{shown}\n\nThreshold 0.8, word:5; {machine_and_date(record)}; SetSimilaritySearch {peer}."


def index_table(record: Record) -> str:
    """Return the speed of the persistent index at two sizes, and compared with an index in memory."""
    rows = []
    for parts in record["growth"].values():
        built, used = parts["build"], parts["use"]
        cells = [f"{built['documents'] / built['seconds']:,.0f}", f"{built['bytes_per_document']:.0f}"]
        times = [f"{1e3 * used[name]:.2f} ms" for name in ("query_p50", "query_p99")]
        opened = [f"{1e3 * used['open_seconds']:.0f} ms", f"{used['resident_bytes'] / 1e6:.0f} MB"]
        rows.append([f"{built['documents']:,}", *cells, *times, *opened, f"{used['removed_per_second']:,.0f}"])
    columns = ["sketches", "added/s", "bytes each", "query p50", "query p99", "open", "memory", "removed/s"]
    figures, peer = record["figures"], record["texts"]["datasketch"][0]["version"]
    added, synced = figures["texts: speedup over datasketch in memory"], figures["durable addition relative to fsync"]
    queried = 1 / figures["texts: query p50 relative to datasketch"]
    return (
        f"{table(columns, rows)}\n\nCompared with datasketch {peer} in memory, adding texts on disk is {added:.0f} "
        f"times as fast, and queries are {queried:.1f} times as fast. Adding one document durably takes {synced:.1f} "
        f"times as long as one `fsync`. {machine_and_date(record)}."
    )


def server_table(record: Record) -> str:
    """Return the request rates of the server, and the query rates of the index without a server."""
    settings, rounds = record["settings"], record["rounds"]
    names = {
        "query": f"query, {settings['documents']:,} documents",
        "passages": f"query with passages, {settings['texts']:,} documents and their texts",
        "add": "add one document",
        "batch": f"add {settings['batch']} documents",
        "healthz": "`/healthz`, without any work",
    }
    rows = []
    for kind, name in names.items():
        middle = {key: median(one[key] for one in rounds[kind]) for key in ("per_second", "p50", "p99")}
        documents = f"{middle['per_second'] * settings['batch']:,.0f}" if kind == "batch" else ""
        times = [f"{1e3 * middle[key]:.1f} ms" for key in ("p50", "p99")]
        rows.append([name, f"{middle['per_second']:,.0f}", documents, *times])
    alone = {key: median(one[key] for one in record["kernel"]) for key in ("by_1", "by_16")}
    rates = f"{alone['by_1']:,.0f} queries/s one at a time and {alone['by_16']:,.0f} queries/s 16 at a time"
    peak = max(one["peak_bytes"] for one in record["memory"].values()) / 1e6
    shown = table(["request", "requests/s", "documents/s", "p50", "p99"], rows)
    load = f"wrk {record['wrk']} with {settings['connections']} connections on the same machine"
    return (
        f"{shown}\n\nTexts of 2 kB, added durably; {load}; one server process, at most {peak:,.0f} MB; the index "
        f"without a server answers {rates}; {machine_and_date(record)}."
    )


def linkage_table(record: Record) -> str:
    """Return pairs completeness, reduction ratio and pairs quality for people with typos."""
    rows = []
    for run in record["runs"]:
        if run["exact"] or run["threshold"] not in (record["settings"]["threshold"], 0.3):
            continue
        figures = [f"{run[name]:.4f}" for name in ("pairs_completeness", "reduction_ratio", "pairs_quality")]
        counts = [f"{run['records']:,}", f"{run['true_pairs_found']:,} of {run['true_pairs']:,}"]
        rows.append([f"febrl{run['set']}", counts[0], f"{run['threshold']}", counts[1], *figures])
    columns = [
        "dataset",
        "records",
        "threshold",
        "true pairs found",
        "pairs completeness",
        "reduction ratio",
        "pairs quality",
    ]
    fields = record["settings"]["fields"]
    return f"{table(columns, rows)}\n\nFields `{fields}`, chosen on febrl1; {machine_and_date(record)}."


def filters_table(record: Record) -> str:
    """Return candidates of the linkage datasets beside those of the published filters."""
    columns = ["dataset", "method", "recall", "precision", "candidates"]
    share = f"{record['recall']:.0%}"
    how = f"The highest threshold on character 3-grams that finds {share} of the true pairs, by an exact join"
    return f"{table(columns, filter_rows(record['runs']))}\n\n{how}; {machine_and_date(record)}."


def vectors_table(record: Record) -> str:
    """Return the search for pairs and neighbours of vectors with minwise, brute force and the peers."""
    names = {
        "brute": "brute force, NumPy",
        "minwise": "**minwise**",
        "flat": "faiss IndexFlatL2, exact",
        "ivf": "faiss IndexIVFFlat, 32 lists probed",
        "lsh": "faiss IndexLSH, 512 bits",
        "hnsw": "faiss IndexHNSWFlat, graph",
        "spark": "Spark BucketedRandomProjectionLSH",
    }
    tasks = {"pairs": "all pairs", "near": "ten nearest", "many": "thousand nearest"}
    rows = []
    for one in record["measurements"]:
        ratio = "" if one["engine"] == "brute" else f"{one['times_brute']:.1f}×"
        # The time of the Java process is not measured.
        processor = "" if one["engine"] == "spark" else f"{one['processor_seconds']:.2f}"
        cells = [f"{one['seconds']:.2f}", processor, ratio, f"{one['recall']:.4f}", f"{one['peak_bytes'] / 1e6:,.0f}"]
        rows.append([one["kind"], tasks[one["task"]], names[one["engine"]], *cells])
    columns = ["points", "task", "engine", "seconds", "CPU seconds", "speedup over brute force", "recall", "peak MB"]
    shown = table(columns, rows)
    settings, versions = record["settings"], {one["engine"]: one["version"] for one in record["measurements"]}
    loads = [one["load"] for one in record["measurements"]]
    what = f"{settings['rows']:,} × {settings['dims']} float32 unless stated otherwise, {settings['queries']:,} queries"
    busy = f", shared with other work: load {min(loads):.0f} to {max(loads):.0f}" if max(loads) > BUSY_LOAD else ""
    machine = f"{machine_and_date(record)}{busy}"
    peers = f"faiss {versions['flat']}, NumPy {versions['brute']}"
    return f"{shown}\n\n{what}; including planning and indexing; {machine}; {peers}."


def quality_table(record: Record) -> str:
    """Return recall and precision of minwise and the peers on the corpora shown in the README."""
    peers = [name for name in COMPARED if not name.startswith("minwise,")]
    rows = list(readme_rows(record))
    shown = table(["corpus, threshold", "true pairs", *peers], rows)
    return f"{shown}\n\n{len(rows)} of {len(record['corpora'])} rows. {how_quality(record)}"


def corpora_table(record: Record) -> str:
    """Return recall and precision of minwise and the peers on every corpus."""
    shown = table(["corpus", "threshold", "true pairs", *COMPARED], list(short_rows(record)))
    return f"{shown}\n\n{how_quality(record)}"


def how_quality(record: Record) -> str:
    """Return the caption of the quality tables, with versions and date."""
    settings, versions = record["settings"], record["versions"]
    seeds = f"mean of {len(settings['seeds'])} seeds where a tool takes one"
    how = f"Recall / precision in percent, best F1 in bold; equal sets, {settings['slots']} slots, {seeds}"
    peers = ("datasketch", "rensa", "gaoya", "text-dedup", "datatrove")
    return f"{how}; {', '.join(f'{name} {versions[name]}' for name in peers)}; {record['finished'][:10]}."


SECTIONS: dict[str, Callable[[Record], str]] = {
    "speed": speed_table,
    "peers": peers_table,
    "scale": scale_table,
    "bounds": bounds_table,
    "exact": exact_table,
    "index": index_table,
    "server": server_table,
    "spark": engines_table,
    "linkage": linkage_table,
    "filters": filters_table,
    "vectors": vectors_table,
    "quality": quality_table,
}
# The other tables are on pages of the documentation.
README_TABLES = ("quality", "peers")
