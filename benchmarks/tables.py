"""Tables: the newest records in, what pages show of them out. ``python -m docs.tools`` puts them there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from statistics import median

from benchmarks.markdown import Record, table, where
from benchmarks.peers.markdown_table import peers_table
from benchmarks.quality.markdown_tables import COMPARED, readme_rows, short_rows
from benchmarks.record_files import FOLDER
from benchmarks.speed.markdown_table import rows as speed_rows

# What two cores with one benchmark on them do not reach by themselves.
BUSY_LOAD = 4


def newest_tables(names: Iterable[str]) -> dict[str, str]:
    """Return tables by name, each of the newest record."""
    return {name: SECTIONS[name](newest_record(name)) for name in names}


def newest_record(name: str) -> Record:
    """Return the record that was finished last; that of sketching has no name before its date."""
    pattern = "[0-9]*.json" if name == "speed" else f"{name}-*.json"
    records: list[Record] = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob(pattern)]
    return max(records, key=itemgetter("finished"))


def speed_table(record: Record) -> str:
    """Return texts to signatures, ours and the peers'."""
    versions = record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in ("datasketch", "rensa"))
    columns = ["texts", "engine", "MB/s, one core", "MB/s, two cores", "minwise on one core is", "and on two"]
    shown = table(columns, list(speed_rows(record)))
    how = f"256 slots, ratios to peers on the first 128 MB; {where(record)}; {peers}, pyarrow {versions['pyarrow']}"
    return f"{shown}\n\n{how}."


def scale_table(record: Record) -> str:
    """Return what `minwise dedup` does with millions of documents."""
    names = {
        "size": "a tenth near-duplicates",
        "memory": "the same, five times the memory allowed",
        "copies": "copies of one page",
        "bucket": "made to share a bucket",
    }
    rows = []
    for one in record["measurements"]:
        run, kept = one["run"], one["answer"]["kept"]
        rate = f"{one['documents'] / run['seconds']:,.0f}"
        sizes = [one["memory"], f"{run['peak_bytes'] / 1e6:,.0f} MB"]
        rows.append([f"{one['documents']:,}", names[one["name"]], f"{run['seconds']:.0f}", rate, *sizes, f"{kept:,}"])
    columns = ["documents", "of 300 bytes,", "seconds", "documents a second", "`--memory`", "peak", "kept"]
    rounds = record["settings"].get("rounds", 1)
    best = f", the best of {rounds} rounds" if rounds > 1 else ""
    return f"{table(columns, rows)}\n\nWith `--work`, two cores{best}; {where(record)}."


def bounds_table(record: Record) -> str:
    """Return each stage of a run beside what bounds it."""
    rows = []
    for stage in record["stages"]:
        bounds = ", ".join(f"{name} {value:.2f}" for name, value in stage["bounds"].items())
        rows.append([stage["stage"], f"{stage['seconds']:.2f}", bounds, f"{stage['times']:.1f}"])
    shown = table(["stage", "seconds", "bound by, in seconds", "times that"], rows)
    counted = ""
    if "pairs" in record:
        candidates, verified = (record["pairs"][name] / 1e6 for name in ("candidates", "verified"))
        counted = f", {candidates:.1f} million candidates, of which {verified:.1f} reach the threshold"
    return f"{shown}\n\n{record['corpus']['documents']:,} passages{counted}; {where(record)}."


def exact_table(record: Record) -> str:
    """Return the exact join against the bands, and against another join of the same sets."""
    rows = []
    for part, names in (("documents", {"bands": "`minwise pairs`", "exact": "`minwise pairs --exact`"}), ("sets", {})):
        for name, runs in record[part].items():
            best = min(runs, key=lambda run: float(run["seconds"]))
            peak = max(run["peak_bytes"] for run in runs)
            cells = [f"{best['seconds']:.1f}", f"{best['pairs']:,}", f"{peak / 1e6:,.0f}"]
            rows.append([f"{record['settings'][part]:,} {part}", names.get(name, name), *cells])
    shown = table(["", "engine", "seconds", "pairs", "peak MB"], rows)
    peer = record["sets"]["SetSimilaritySearch"][0]["version"]
    return f"{shown}\n\nThreshold 0.8, word:5; {where(record)}; SetSimilaritySearch {peer}."


def index_table(record: Record) -> str:
    """Return what the persistent index does at two sizes, and beside one in memory."""
    rows = []
    for parts in record["growth"].values():
        built, used = parts["build"], parts["use"]
        cells = [f"{built['documents'] / built['seconds']:,.0f}", f"{built['bytes_per_document']:.0f}"]
        times = [f"{1e3 * used[name]:.2f} ms" for name in ("query_p50", "query_p99")]
        opened = [f"{1e3 * used['open_seconds']:.0f} ms", f"{used['resident_bytes'] / 1e6:.0f} MB"]
        rows.append([f"{built['documents']:,}", *cells, *times, *opened, f"{used['removed_per_second']:,.0f}"])
    columns = [
        "sketches",
        "added a second",
        "bytes each",
        "query, median",
        "99 of 100",
        "open",
        "memory",
        "removed a second",
    ]
    figures, peer = record["figures"], record["texts"]["datasketch"][0]["version"]
    texts, single = figures["texts: times datasketch in memory"], figures["one durable addition by one sync"]
    asked = 1 / figures["texts: query p50 by datasketch's"]
    beside = (
        f"From text, on disk, {texts:.0f} times as fast as datasketch {peer} in memory, and asked {asked:.1f} times"
    )
    return (
        f"{table(columns, rows)}\n\n{beside} as fast; one document, durable, in {single:.1f} times one `fsync`. "
        f"{where(record)}."
    )


def server_table(record: Record) -> str:
    """Return what the service answers to sixteen connections, and what it would without one."""
    settings, rounds = record["settings"], record["rounds"]
    names = {
        "query": f"query, {settings['documents']:,} documents",
        "passages": f"query with passages, {settings['texts']:,} documents and their texts",
        "add": "add one document",
        "batch": f"add {settings['batch']} documents",
        "healthz": "`/healthz`, which does nothing",
    }
    rows = []
    for kind, name in names.items():
        middle = {key: median(one[key] for one in rounds[kind]) for key in ("per_second", "p50", "p99")}
        documents = f"{middle['per_second'] * settings['batch']:,.0f}" if kind == "batch" else ""
        times = [f"{1e3 * middle[key]:.1f} ms" for key in ("p50", "p99")]
        rows.append([name, f"{middle['per_second']:,.0f}", documents, *times])
    alone = {key: median(one[key] for one in record["kernel"]) for key in ("by_1", "by_16")}
    rates = f"asked without a server, one by one {alone['by_1']:,.0f} a second, 16 at a time {alone['by_16']:,.0f}"
    peak = max(one["peak_bytes"] for one in record["memory"].values()) / 1e6
    shown = table(["request", "requests a second", "documents a second", "median", "99 of 100"], rows)
    load = f"wrk {record['wrk']} with {settings['connections']} connections on the same machine"
    return (
        f"{shown}\n\nTexts of 2 kB, added durably; {load}; one server process, at most {peak:,.0f} MB; the index, "
        f"{rates}; {where(record)}."
    )


def spark_table(record: Record) -> str:
    """Return what Spark takes for the same documents, ours and MLlib's, and for ten times as many."""
    names = {
        "mllib": "MLlib, `approxSimilarityJoin`",
        "files": "`minwise pairs --engine spark`",
        "frame": "`minwise.spark.pairs` of a DataFrame",
        "dedup": "`minwise dedup --engine spark`, made-up documents",
    }
    best: dict[tuple[int, str], Record] = {}
    for one in record["runs"]:
        key = (one["documents"], one["way"])
        if key not in best or one["seconds"] < best[key]["seconds"]:
            best[key] = one
    rows = []
    for one in sorted(best.values(), key=lambda one: (one["way"] == "dedup", one["documents"])):
        seconds = f"{one['seconds']:.1f}" if one["finished"] else f"more than {one['seconds']:.0f}"
        recall = f"{one['recall']:.4f}" if "recall" in one else ""
        rows.append([f"{one['documents']:,}", names[one["way"]], seconds, recall])
    said = ["Threshold 0.8, word:5, recall against an exact join", *spark_figures(record)]
    said.append(f"Spark {record['versions']['pyspark']}, local[2]; {where(record)}.")
    note = f" {record['note']}" if "note" in record else ""
    return f"{table(['documents', 'way', 'seconds', 'recall'], rows)}\n\n{'; '.join(said)}{note}"


def spark_figures(record: Record) -> Iterator[str]:
    """Yield what follows from the runs, as far as they finished."""
    ratios = record["ratios"]
    faster = [value for name, value in ratios.items() if name.endswith("MLlib")]
    if faster:
        yield f"{min(faster):.1f} times as fast as MLlib at least"
    if "time at ten times the documents" in ratios:
        yield f"ten times the documents take {ratios['time at ten times the documents']:.1f} times as long"
    staged = [one for one in record["runs"] if one["way"] == "dedup" and one.get("stages")]
    if staged:
        large = max(staged, key=lambda one: int(one["documents"]))
        total = sum(stage["shuffled_bytes"] for stage in large["stages"]) / large["documents"]
        entry = ratios["bytes shuffled per band entry"]
        yield f"a band entry is shuffled in {entry:.1f} bytes, a document in {total:,.0f}"


def records_table(record: Record) -> str:
    """Return how many true pairs of people with typos are found, and how many pairs need no look."""
    rows = []
    for run in record["runs"]:
        if run["exact"] or run["threshold"] not in (record["settings"]["threshold"], 0.3):
            continue
        figures = [f"{run[name]:.4f}" for name in ("pairs_completeness", "reduction_ratio", "pairs_quality")]
        counts = [f"{run['records']:,}", f"{run['true_pairs_found']:,} of {run['true_pairs']:,}"]
        rows.append([f"febrl{run['set']}", counts[0], f"{run['threshold']}", counts[1], *figures])
    columns = ["", "records", "threshold", "true pairs found", "pairs completeness", "reduction ratio", "pairs quality"]
    fields = record["settings"]["fields"]
    return f"{table(columns, rows)}\n\nFields `{fields}`, chosen on febrl1; {where(record)}."


def vectors_table(record: Record) -> str:
    """Return pairs and neighbours of vectors, ours, brute force and the peers'."""
    names = {
        "brute": "brute force, NumPy",
        "minwise": "**minwise**",
        "flat": "faiss IndexFlatL2, exact",
        "ivf": "faiss IndexIVFFlat, 32 lists probed",
        "lsh": "faiss IndexLSH, 512 bits",
        "hnsw": "faiss IndexHNSWFlat, a graph",
        "spark": "Spark BucketedRandomProjectionLSH",
    }
    tasks = {"pairs": "all pairs", "near": "ten nearest"}
    rows = []
    for one in record["measurements"]:
        ratio = "" if one["engine"] == "brute" else f"{one['times_brute']:.1f}×"
        own = "" if one["engine"] == "spark" else f"{one['processor_seconds']:.2f}"  # Java's is not seen
        cells = [f"{one['seconds']:.2f}", own, ratio, f"{one['recall']:.4f}", f"{one['peak_bytes'] / 1e6:,.0f}"]
        rows.append([one["kind"], tasks[one["task"]], names[one["engine"]], *cells])
    columns = ["points", "task", "engine", "seconds", "of processor", "as fast as brute force", "recall", "peak MB"]
    shown = table(columns, rows)
    settings, versions = record["settings"], {one["engine"]: one["version"] for one in record["measurements"]}
    loads = [one["load"] for one in record["measurements"]]
    what = (
        f"{settings['rows']:,} × {settings['dims']} float32 where no number is given, {settings['queries']:,} queries"
    )
    busy = f", shared with others: load {min(loads):.0f} to {max(loads):.0f}" if max(loads) > BUSY_LOAD else ""
    machine = f"{where(record)}{busy}"
    return (
        f"{shown}\n\n{what}; plan and index included; {machine}; faiss {versions['flat']}, NumPy {versions['brute']}."
    )


def quality_table(record: Record) -> str:
    """Return recall and precision on the corpora that the README has room for, ours and the peers'."""
    peers = [name for name in COMPARED if not name.startswith("minwise,")]
    rows = list(readme_rows(record))
    shown = table(["corpus, threshold", "true pairs", *peers], rows)
    return f"{shown}\n\n{len(rows)} of {len(record['corpora'])} lines. {how_quality(record)}"


def corpora_table(record: Record) -> str:
    """Return recall and precision on every corpus, ours and the peers'."""
    shown = table(["corpus", "threshold", "true pairs", *COMPARED], list(short_rows(record)))
    return f"{shown}\n\n{how_quality(record)}"


def how_quality(record: Record) -> str:
    """Return what the numbers of the tables of quality are, and of which versions."""
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
    "spark": spark_table,
    "records": records_table,
    "vectors": vectors_table,
    "quality": quality_table,
}
# The others are on pages of the docs.
README_TABLES = ("quality", "peers")
