"""Public calls: ``dedup``, ``pairs``, ``nearest``, ``passages``, ``audit`` and others, and those that write files.

Each call does the same four steps: open the sources, resolve the settings, run the engine, build the result.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, overload

from minwise.checks import check_integer, check_path, check_raised_threshold, check_type, show
from minwise.errors import ConfigError, FormatError, InputError
from minwise.inputs.files import is_url
from minwise.inputs.memory_sources import is_in_memory, reusable, row_selector
from minwise.inputs.open_sources import Files, OpenedSources, open_sources
from minwise.inputs.row_edits import check_added, check_cuts_possible
from minwise.inputs.source import Columns, CopyError, TextSettings, fault_error
from minwise.inputs.table_writer import local_table_path, write_tables
from minwise.options import (
    AnyDedupOptions,
    AuditOptions,
    ClustersOptions,
    CutDedupOptions,
    CutOptions,
    DecontaminateOptions,
    DedupOptions,
    DocumentSource,
    EndingOptions,
    NearestOptions,
    PairsOptions,
    PassagesOptions,
    PathOrUrl,
    RunOptions,
    definitions,
    with_defaults,
)
from minwise.progress import Stopwatch
from minwise.results import CutResult, DecontaminationResult, DedupResult
from minwise.results.contamination import MARKS
from minwise.results.display import ResultTable, clusters_result, nearest_result, one_table, pairs_result
from minwise.results.earlier_runs import EarlierRuns, open_earlier_runs
from minwise.results.endings import Ending, ending_of
from minwise.results.finished_run import FinishedRun
from minwise.results.marks import refuse_clashes
from minwise.results.nearest import NearestTables
from minwise.results.output import Output, RemoteOutput, check_output, is_published, output_of, refuse_inputs
from minwise.results.pairs import Clustering, blocking_quality, pair_report, pair_schema, pair_tables
from minwise.results.passages import PassageTables
from minwise.results.preview import preview_clusters, preview_pairs
from minwise.results.removals import DedupDecision, check_similarities
from minwise.results.report_data import RunRecord
from minwise.results.restoration import check_destination
from minwise.results.thresholds import chosen_threshold
from minwise.search.contamination import read_items
from minwise.search.contamination_audit import audit_contamination
from minwise.search.cuts import CutRules, find_cuts
from minwise.search.documents import Corpus, SearchJob
from minwise.search.engine import Engine, LocalEngine, SearchResult
from minwise.search.grouping import group_rows
from minwise.search.line_stream import LineStream
from minwise.search.nearest import find_nearest
from minwise.search.needed_pairs import Needed
from minwise.search.run_estimate import RunEstimate, estimate_corpus
from minwise.search.state_writer import refuse_loose_files
from minwise.search.stored_documents import without_stored
from minwise.search.stored_state import StoredState
from minwise.search.weighting import read_frequencies
from minwise.search.workdir import WorkDirectory, choose_workdir, temporary_workdir
from minwise.settings import (
    ContaminationRule,
    NearestSettings,
    RunLimits,
    SearchSettings,
    check_stored_keys,
    columns_to_read,
    contamination_rule,
    eval_columns,
    groups_rows,
    nearest_settings,
    passage_settings,
    progress_of,
    recorded_options,
    resolve_options,
    restored_options,
    run_limits,
    runs_on_spark,
    search_settings,
    second_table,
)
from minwise.text.shingling import ShingleSets

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from minwise.index.update import IndexUpdate
    from minwise.results.audit import Audit

__all__ = [
    "audit",
    "clusters",
    "decontaminate",
    "dedup",
    "dedup_stream",
    "estimate_run",
    "nearest",
    "pairs",
    "passages",
    "rethreshold",
    "write_clusters",
    "write_nearest",
    "write_pairs",
    "write_passages",
]

Result = TypeVar("Result", DedupResult, CutResult, DecontaminationResult)
# Largest value of min_left: more tokens than a document can have.
MOST_LEFT = 2**32
# Settings that a decontamination shares with other searches.
SHARED_NAMES = definitions(DedupOptions).keys() & definitions(DecontaminateOptions).keys()
# Values that a stream, whose lines are decided one by one, needs.
STREAM_VALUES = {
    "keep": "first",
    "prefer": None,
    "protect": None,
    "group": "star",
    "measure": "jaccard",
    "discount": "none",
    "frequencies": None,
    "save_frequencies": None,
    "exact": False,
    "verify": "exact",
    "html": False,
    "work": None,
    "against": None,
    "within": None,
    "across": None,
    "against_run": None,
    "save_state": False,
    "update": None,
    "delimiter": None,
    "encoding": None,
    **{name: one.default for name, one in definitions(EndingOptions).items()},
}


def pairs(
    source: DocumentSource,
    *,
    sources: bool = False,
    field_similarities: bool = False,
    **options: "Unpack[PairsOptions]",
) -> ResultTable:
    """Return every pair of near-duplicates: the ids ``left`` and ``right``, and their ``similarity``.

    Pairs are in document order. Identical documents are pairs too. With ``among``, ``left`` is a document of the source
    and ``right`` one of the second table. :func:`write_pairs` writes a file instead, of any size.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        sources: Add the columns source and row of both documents.
        field_similarities: With fields, add a column ``FIELD_similarity`` per field: the Jaccard similarity of its
            shingles alone, null if one of the records has none.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        among: Second table: only pairs of one document of each table are found, none inside a table.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.

    Returns:
        An Arrow table with the columns left, right and similarity, in document order of left, then of right.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.

    >>> import minwise as mw
    >>> mw.pairs(["one two three four five six", "One, two, three, four, five, six.", "seven"]).to_pylist()
    [{'left': 0, 'right': 1, 'similarity': 1.0}]
    """
    chosen = resolve_options(PairsOptions, source, options)
    _check_field_similarities(field_similarities, chosen)
    with ExitStack() as stack:
        found = _search(source, chosen, stack, None)
        return pairs_result(found, sources=sources, field_similarities=field_similarities)


def write_pairs(
    source: DocumentSource,
    output: PathOrUrl | None,
    *,
    sources: bool = False,
    field_similarities: bool = False,
    truth: str | None = None,
    overwrite: bool = True,
    **options: "Unpack[PairsOptions]",
) -> dict[str, Any]:
    """Write every pair of near-duplicates to a file and return the report of the run.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A .parquet, .csv, .tsv or .jsonl file, or its URL; None for a preview in the report instead, ``first``.
        sources: Add the columns source and row of both documents.
        field_similarities: With fields, add a column ``FIELD_similarity`` per field: the Jaccard similarity of its
            shingles alone, null if one of the records has none.
        truth: Ground-truth entity column; adds recall and precision of the pairs to the report.
        overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        among: Second table: only pairs of one document of each table are found, none inside a table.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.

    Returns:
        The counts, settings and warnings of the run.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.
    """
    chosen = resolve_options(PairsOptions, source, options)
    _check_truth(truth, chosen)
    _check_field_similarities(field_similarities, chosen)
    columns = {"sources": sources, "field_similarities": field_similarities}
    with ExitStack() as stack:
        found = _search(source, chosen, stack, output)
        quality = {} if truth is None else {"blocking": blocking_quality(found, truth)}
        if output is None:
            return {**pair_report(found), **preview_pairs(found, field_similarities=field_similarities), **quality}
        schema, report = pair_schema(found, **columns), pair_report(found)  # may fail: before there is a file
        written = write_tables(output, pair_tables(found, **columns), schema, overwrite=overwrite)
        return {**report, "pairs": written, **quality}


def _check_truth(truth: str | None, options: DedupOptions) -> None:
    """Raise if a ground-truth column is given where no quality can be computed from it."""
    if truth is None:
        return
    if not isinstance(truth, str) or not truth:
        raise ConfigError(f"truth must be a name, got {show(truth)}")
    spark = runs_on_spark(options)
    if spark or groups_rows(options):
        other = "engine spark" if spark else "group_by and transpose"
        raise ConfigError(f"truth must be left out with {other}, got {show(truth)}")


def _check_field_similarities(given: bool, options: DedupOptions) -> None:
    """Raise if similarities of fields are wanted where documents have none."""
    if not isinstance(given, bool):
        raise ConfigError(f"field_similarities must be True or False, got {show(given)}")
    if not given:
        return
    if options["fields"] is None:
        raise ConfigError("field_similarities must be left out without fields, got True")
    if runs_on_spark(options):
        raise ConfigError("field_similarities must be left out with engine spark, got True")


def clusters(source: DocumentSource, **options: "Unpack[ClustersOptions]") -> ResultTable:
    """Return the cluster of every document: its ``id``, ``cluster`` (the id of its first document) and ``size``.

    With ``among``, pairs of both tables form clusters, and every document of both is listed, those of the source first.
    A cluster has the id of its first document in the second table. As ids of both tables may be equal, ``table`` and
    ``cluster_table`` name the table of each id: ``left`` for the source, ``right`` for the second one.
    :func:`write_clusters` writes a file instead, of any size.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        among: Second table: only pairs of one document of each table are found, none inside a table.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.
        group: How pairs form clusters: components joins all documents that pairs connect, star only those similar to
            the first. Default: components.

    Returns:
        A table with the columns id, cluster and size, in document order.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.

    >>> import minwise as mw
    >>> mw.clusters(["one two three four five six", "One, two, three, four, five, six.", "seven"]).to_pydict()
    {'id': [0, 1, 2], 'cluster': [0, 0, 2], 'size': [2, 2, 1]}
    """
    chosen = resolve_options(ClustersOptions, source, options)
    with ExitStack() as stack:
        return clusters_result(_search(source, chosen, stack, None, chosen["group"]))


def write_clusters(
    source: DocumentSource,
    output: PathOrUrl | None,
    *,
    overwrite: bool = True,
    **options: "Unpack[ClustersOptions]",
) -> dict[str, Any]:
    """Write the cluster of every document to a file and return the report of the run.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A .parquet, .csv, .tsv or .jsonl file, or its URL; None for a preview in the report instead, ``first``.
        overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        among: Second table: only pairs of one document of each table are found, none inside a table.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.
        group: How pairs form clusters: components joins all documents that pairs connect, star only those similar to
            the first. Default: components.

    Returns:
        The counts, settings and warnings of the run.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.
    """
    chosen = resolve_options(ClustersOptions, source, options)
    with ExitStack() as stack:
        found = _search(source, chosen, stack, output, chosen["group"])
        clustering = Clustering(found)
        if output is None:
            return {**pair_report(found), **preview_clusters(found, clustering)}
        report = pair_report(found)  # may fail: before there is a file
        write_tables(output, clustering.tables(), clustering.schema, overwrite=overwrite)
        return {**report, "clusters": clustering.cluster_count}


@overload
def dedup(
    source: DocumentSource,
    output: PathOrUrl | None = None,
    *,
    overwrite: bool = False,
    passages: Literal[False] = False,
    **options: "Unpack[DedupOptions]",
) -> DedupResult: ...


@overload
def dedup(
    source: DocumentSource,
    output: PathOrUrl | None = None,
    *,
    overwrite: bool = False,
    passages: Literal[True],
    **options: "Unpack[CutDedupOptions]",
) -> CutResult: ...


def dedup(
    source: DocumentSource,
    output: PathOrUrl | None = None,
    *,
    overwrite: bool = False,
    passages: bool = False,
    **options: "Unpack[AnyDedupOptions]",
) -> DedupResult | CutResult:
    """Remove near-duplicates: every removed document has a kept one whose similarity reaches the threshold.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A new or empty directory to write the result to, or its URL; nothing is written if not given.
        overwrite: Replace an output directory that is not empty.
        passages: Cut repeated passages out of the documents instead. The settings of the search for near-duplicates
            must be left out then, and min_tokens, snap and min_left otherwise.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.
        prefer: Values of a column to prefer, the first most, such as source=wiki,books,crawl; rows with other values
            come after them, and keep decides among equals. Numbers are named by their shortest decimal form. A mapping
            of the column to its values is accepted, too.
        protect: Rows that are never removed, such as source=wiki; other rows are removed for them. Several are
            accepted. A mapping of columns to a value or several is accepted, too.
        copies: Documents of each cluster to keep: up to so many, the first ones in keep order. Default: 1.
        drop_all: Keep no document of a cluster of two or more. With group components, these are all documents that have
            a near-duplicate. Default: False.
        mark: Keep every row, and add the columns cluster, cluster_size, cluster_rank, similarity (under its name in
            removed.parquet) and kept. Default: False.
        mark_names: With mark, other names of these columns, such as 'cluster=dup_id kept=keep'. A mapping is accepted,
            too.
        add_weight: Add a column of weights to the kept rows, such as 'weight=min(size, 5)': an expression of size and
            rank in the cluster, and of votes, with + - * / ( ), min, max, log and sqrt.
        votes: Column whose distinct values are counted in each cluster; clusters.parquet gets a column votes, marked
            rows, too.
        target: Documents to keep, as a number such as 1e6 or as a share below 1 of those read: choose the threshold,
            from threshold to 1 in steps of 0.01, that leaves the nearest number.
        against_run: Output directory of an earlier run with the same settings, or several: compare with its kept rows,
            and with those of the runs that it was run against. Saved states are read instead of the rows.
        save_state: Save keys, ids and shingles of the kept rows in OUT/state, so that a later run with against_run
            reads no text of this one. Default: False.
        group: How pairs form clusters: star removes only documents similar to the kept one, components all documents
            that pairs connect. Default: star.
        keep: Document of a cluster to keep: first, last, longest, shortest, max:COL or min:COL. Several, such as
            max:quality,longest,first, decide one after the other where those before are equal. Default: first.
        against: Reference corpus: compared with, never removed and never written.
        update: Index of texts with the same settings: compare with its documents, and add the kept rows to it.
        min_tokens: Minimum number of tokens of a repeated passage, from 1 to 100,000; if not given, 50, or 1 with unit.
        unit: Find repeated whole lines, sentences or paragraphs instead of passages, and count each.
        min_count: With unit, list units that occur at least so many times, the first included; 2 if not given.
        snap: Cut only whole lines or sentences that are repeated as a whole; any run of tokens if not given.
        min_left: Minimum number of tokens left of a document; if cuts leave fewer, it is removed. Default: 0.

    Returns:
        The kept and removed documents, clusters and report; with ``output``, also in files. The kept documents have the
        type of ``source``: a DataFrame for a DataFrame, a list for a list.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.

    >>> import minwise as mw
    >>> result = mw.dedup(["one two three four five six", "One, two, three, four, five, six.", "seven"])
    >>> result.kept
    ['one two three four five six', 'seven']
    """
    source = reusable(source)
    if check_type("passages", passages, bool):
        return _dedup_passages(source, output, options, overwrite=overwrite)
    _refuse_cut_options(options)
    chosen = resolve_options(DedupOptions, source, options)
    watch = Stopwatch(progress_of(chosen["progress"]))
    folder = None if output is None else output_of(output)
    _refuse_groups(chosen)
    with ExitStack() as session, ExitStack() as stack, ExitStack() as indexes:
        settings, limits = search_settings(chosen), run_limits(chosen)
        ending = ending_of(chosen, settings)
        _refuse_nesting(folder, chosen["work"])
        update = _update(chosen, settings, folder, indexes)
        earlier = _earlier_runs(chosen, settings)
        corpus = _corpus(chosen, source, settings, earlier=earlier, update=update)
        refuse_clashes(corpus.sources[corpus.against :], ending)
        _check_state(chosen, settings, corpus, folder)
        manifest = _dedup_manifest(chosen, corpus, settings, ending)
        work = _work(chosen, manifest, folder if isinstance(folder, Path) else None, stack)
        published = folder is not None and is_published(work, folder, ending.note) and _has_state(chosen, folder)
        if folder is not None and not published:
            check_output(folder, corpus.sources, overwrite=overwrite)
            earlier.refuse_output(folder)
        run = RunRecord.begin(corpus, manifest, recorded_options(chosen), watch, against_run=earlier.to_list())
        engine = _engine(chosen, limits, manifest, session)
        job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=watch)
        select = row_selector(source) if is_in_memory(corpus.sources[-1]) else None

        def search() -> DedupResult:
            with corpus.unchanged():
                found = engine.find(job, needed=_needed(settings, ending), for_report=True)
            earlier.refuse_changed_rows(found.documents, first=0 if update is None else 1)
            _save_frequencies(chosen, found.work)
            result = DedupResult(
                found,
                engine=engine,
                run=run,
                threshold=chosen_threshold(DedupDecision(found, engine.similarities, ending=ending)),
                published=published,
                select=select,
                ending=ending,
                save_state=chosen["save_state"],
            )
            if update is not None:
                update.note_kept(found.documents, result.keep)
            return result

        result = _written(search, corpus, work, None if published else output, chosen, overwrite=overwrite)
        if update is not None:
            update.add_kept()
        watch.stop()
        result.own(session.pop_all())
        if work.temporary:
            result.own(stack.pop_all())
    return result


def _needed(settings: SearchSettings, ending: Ending) -> Needed:
    """Return which pairs decide a result: all of them if its threshold is chosen after the search."""
    return "star" if settings.group == "star" and ending.target is None else "pairs"


def _dedup_manifest(options: DedupOptions, corpus: Corpus, settings: SearchSettings, ending: Ending) -> dict[str, Any]:
    """Return what identifies the search of a deduplication: several endings may use its work directory."""
    given = ending.searched
    return {**_manifest(options, corpus, settings, "dedup"), **({"ending": given} if given else {})}


def _refuse_cut_options(options: AnyDedupOptions) -> None:
    """Raise for the first setting that only cuts have."""
    for name, value in options.items():
        if name in definitions(CutOptions):
            raise ConfigError(f"{name} must be left out without passages, got {show(value)}; set passages=True")


def _dedup_passages(
    source: DocumentSource, output: PathOrUrl | None, given: AnyDedupOptions, *, overwrite: bool
) -> CutResult:
    """Cut repeated passages out of the documents."""
    for name, value in given.items():
        if name in definitions(DedupOptions) and name not in definitions(CutDedupOptions):
            why = "cannot cut markup" if name == "html" else "has no search for near-duplicates"
            rule = f"{name} must be left out with passages, which {why}"
            raise ConfigError(f"{rule}, got {show(value)}")
    chosen = with_defaults(CutDedupOptions, given)
    rules = CutRules(chosen["snap"], check_integer("min_left", chosen["min_left"], 0, MOST_LEFT))
    folder = None if output is None else output_of(output)
    wanted, options = passage_settings(given, CutDedupOptions), _passage_options(source, given)
    with ExitStack() as session, ExitStack() as stack:
        watch = Stopwatch(progress_of(options["progress"]))
        settings, limits = search_settings(options), run_limits(options)
        _refuse_nesting(folder, options["work"])
        corpus = _corpus(options, source, settings)
        task = {**wanted._asdict(), **rules._asdict()}
        manifest = {**_manifest(options, corpus, settings, "dedup passages"), **task}
        work = _work(options, manifest, folder if isinstance(folder, Path) else None, stack)
        published = folder is not None and is_published(work, folder)
        if folder is not None and not published:
            check_output(folder, corpus.sources, overwrite=overwrite)
        recorded = {**recorded_options(options), "passages": True, **task}
        run = RunRecord.begin(corpus, manifest, recorded, watch)
        engine = _engine(options, limits, manifest, session)
        job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=watch)

        def search() -> CutResult:
            with corpus.unchanged():
                found = engine.find_passages(job, wanted, only_reference=options["against"] is not None)
                return CutResult(find_cuts(job, found, rules), engine=engine, run=run, published=published)

        result = _written(search, corpus, work, None if published else output, options, overwrite=overwrite)
        watch.stop()
        result.own(session.pop_all())
        if work.temporary:
            result.own(stack.pop_all())
    return result


def _written(
    search: Callable[[], Result],
    corpus: Corpus,
    work: WorkDirectory,
    output: PathOrUrl | None,
    options: DedupOptions,
    *,
    overwrite: bool,
) -> Result:
    """Return the result of a search, written to ``output`` if it is given.

    If rows cannot be copied, the search is repeated without them.
    """
    result = search()
    if output is None:
        return result
    try:
        result.write(output, overwrite=overwrite)
    except CopyError as error:
        if runs_on_spark(options) and is_url(options["work"]):
            raise  # finished stages at a URL are those of all rows
        _quarantine_damage(corpus, error)
        work.restart()
        result = search()
        result.write(output, overwrite=overwrite)
    return result


def _quarantine_damage(corpus: Corpus, error: CopyError) -> None:
    """Let rows that cannot be copied be quarantined by the next search: they must not be witnesses of removals.

    Only a run that fails to copy reads columns that are not compared, so no other run takes longer.

    Raises:
        InputError: If the run must not go on without a row.
        CopyError: If every row can be read now.
    """
    if corpus.on_error == "fail":
        raise fault_error(error) from None
    if not any([source.note_damage() for source in corpus.sources[corpus.against :]]):  # noqa: C419 - of all sources
        raise error


def rethreshold(
    output: PathOrUrl,
    destination: PathOrUrl,
    threshold: float,
    *,
    overwrite: bool = False,
    **options: "Unpack[RunOptions]",
) -> DedupResult:
    """Write the result of an earlier run for a higher threshold.

    The result equals that of :meth:`DedupResult.rethreshold <minwise.results.DedupResult.rethreshold>` on the earlier
    run, byte for byte. An output directory has no pairs, so the search runs again, with the settings and the plan that
    ``run.json`` records, and compares all its candidates; with its work directory it reads no document again.

    Args:
        output: The directory that :func:`dedup` wrote.
        destination: A new or empty directory, or the URL of one.
        threshold: A threshold of at least that of the earlier run, and at most 1.
        overwrite: Whether a directory that is not empty may be replaced.
        **options: Settings; see Keyword Args.

    Keyword Args:
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.

    Returns:
        The kept and removed documents, clusters and report, which are also in files.

    Raises:
        ConfigError: If the threshold is lower than that of the run, or the run did not read files.
        MismatchError: If an input has changed since the run.
        FormatError: If the directory is not the output of a run, or was written by an older version.
    """
    run, given = FinishedRun.open(output), with_defaults(RunOptions, options)
    folder, chosen = output_of(destination), _recorded_options(run, given)
    settings = search_settings(chosen)
    check_similarities(settings)
    lowest, origin = settings.plan.threshold, f"that of {run.folder}"
    raised = check_raised_threshold(threshold, lowest, origin, "; run minwise dedup for a lower one")
    if isinstance(folder, Path):
        check_destination(folder, run, overwrite=overwrite)
    _refuse_nesting(folder, chosen["work"])
    higher = _search_again(run, chosen, settings, folder).rethreshold(raised)
    try:
        higher.write(destination, overwrite=overwrite)
    except CopyError as error:
        higher = _search_again(run, chosen, settings, folder, error).rethreshold(raised)
        higher.write(destination, overwrite=overwrite)
    return higher


def _search_again(
    run: FinishedRun, options: DedupOptions, settings: SearchSettings, output: Output, error: CopyError | None = None
) -> DedupResult:
    """Return the result of an earlier run, computed from its unchanged inputs on this machine.

    After an error about rows that cannot be copied, without these rows.
    """
    remedy = "can only be computed again from its unchanged input"
    run.refuse_changes(remedy)
    watch = Stopwatch(progress_of(options["progress"]))
    corpus, limits, engine = _corpus_of(run, options, settings, remedy), run_limits(options), LocalEngine()
    with ExitStack() as stack:
        ending = ending_of(options, settings)
        manifest = _dedup_manifest(options, corpus, settings, ending)
        work = _work(options, manifest, output if isinstance(output, Path) else None, stack)
        if error is not None:
            _quarantine_damage(corpus, error)
            work.restart()
        directory, earlier = run.record["directory"], run.record.get("against_run")
        record = RunRecord.begin(corpus, manifest, run.record["options"], watch, directory, earlier)
        job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=watch)
        with corpus.unchanged():
            found = engine.find(job, for_report=True)
        run.refuse_changes(remedy)  # during the search
        result = DedupResult(found, engine=engine, run=record, ending=ending)
        if work.temporary:
            result.own(stack.pop_all())
    return result


def _recorded_options(run: FinishedRun, given: dict[str, Any]) -> DedupOptions:
    """Return the settings of an earlier run, with other memory and threads.

    Raises:
        FormatError: If they are not recorded, or are those of another run.
    """
    for name, kind in (("options", dict), ("against", list)):
        if not isinstance(run.record.get(name), kind):
            path = run.folder / "run.json"
            raise FormatError(f"{path}: must have {name}, got one of an older minwise; run minwise dedup again")
    chosen = restored_options(run.record["options"], given)
    ours, theirs = search_settings(chosen).to_dict(), run.report["settings"]
    for name in ours:
        if name != "threshold" and ours[name] != theirs.get(name):
            raise FormatError(
                f"{run.folder}: run.json and report.json must be of one run, got {name} {show(ours[name])} and "
                f"{show(theirs.get(name))}; run minwise dedup again"
            )
    return chosen


def _corpus_of(run: FinishedRun, options: DedupOptions, settings: SearchSettings, remedy: str) -> Corpus:
    """Open the sources of an earlier run."""
    against = run.reference_sources(remedy)
    return Corpus(
        sources=[*against, *map(run.source, range(len(run.files)))],
        columns=columns_to_read(options, settings),
        against=len(against),
        on_error=options["on_error"],
        root=run.root,
        format=options["format"],
        text_settings=TextSettings.of(options["delimiter"], options["encoding"]),
        skipped=run.report.get("inputs", {}).get("skipped", {}),
    ).note_files()


def dedup_stream(source: BinaryIO, output: BinaryIO, **options: "Unpack[DedupOptions]") -> dict[str, int]:
    """Copy the JSON lines that are not near-duplicates of an earlier line, as soon as each is decided.

    The lines are those that :func:`dedup` with ``keep="first"`` keeps, as long as no bucket exceeds ``max_bucket``.
    Only the band keys of kept lines stay in memory; their shingles go to a temporary file.

    Args:
        source: An open binary file of JSON lines, such as ``sys.stdin.buffer``.
        output: Receives kept lines; flushed whenever reading the source would block.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.
        prefer: Values of a column to prefer, the first most, such as source=wiki,books,crawl; rows with other values
            come after them, and keep decides among equals. Numbers are named by their shortest decimal form. A mapping
            of the column to its values is accepted, too.
        protect: Rows that are never removed, such as source=wiki; other rows are removed for them. Several are
            accepted. A mapping of columns to a value or several is accepted, too.
        copies: Documents of each cluster to keep: up to so many, the first ones in keep order. Default: 1.
        drop_all: Keep no document of a cluster of two or more. With group components, these are all documents that have
            a near-duplicate. Default: False.
        mark: Keep every row, and add the columns cluster, cluster_size, cluster_rank, similarity (under its name in
            removed.parquet) and kept. Default: False.
        mark_names: With mark, other names of these columns, such as 'cluster=dup_id kept=keep'. A mapping is accepted,
            too.
        add_weight: Add a column of weights to the kept rows, such as 'weight=min(size, 5)': an expression of size and
            rank in the cluster, and of votes, with + - * / ( ), min, max, log and sqrt.
        votes: Column whose distinct values are counted in each cluster; clusters.parquet gets a column votes, marked
            rows, too.
        target: Documents to keep, as a number such as 1e6 or as a share below 1 of those read: choose the threshold,
            from threshold to 1 in steps of 0.01, that leaves the nearest number.
        against_run: Output directory of an earlier run with the same settings, or several: compare with its kept rows,
            and with those of the runs that it was run against. Saved states are read instead of the rows.
        save_state: Save keys, ids and shingles of the kept rows in OUT/state, so that a later run with against_run
            reads no text of this one. Default: False.
        group: How pairs form clusters: star removes only documents similar to the kept one, components all documents
            that pairs connect. Default: star.
        keep: Document of a cluster to keep: first, last, longest, shortest, max:COL or min:COL. Several, such as
            max:quality,longest,first, decide one after the other where those before are equal. Default: first.
        against: Reference corpus: compared with, never removed and never written.
        update: Index of texts with the same settings: compare with its documents, and add the kept rows to it.

    Returns:
        The number of lines read, kept, removed and not readable.

    Raises:
        ConfigError: If a setting is unknown, has a wrong value, or has no meaning for a stream.
    """
    chosen = resolve_options(DedupOptions, source, options)
    _refuse_groups(chosen)
    for name, needed in STREAM_VALUES.items():
        value = chosen[name]  # type: ignore[literal-required]
        if value != needed:
            raise ConfigError(f"{name} must be {needed} for a stream, got {show(value)}; give files")
    if chosen["format"] not in (None, "jsonl"):
        raise ConfigError(f"format must be jsonl for a stream, got {chosen['format']}; give files")
    settings = search_settings(chosen)
    with temporary_workdir(None) as work:
        columns = columns_to_read(chosen, settings)
        stream = LineStream(settings, columns, work, chosen["on_error"], run_limits(chosen))
        return stream.run(source, output)


def audit(
    source: DocumentSource,
    output: PathOrUrl | None = None,
    *,
    sample: int = 20_000,
    overwrite: bool = True,
    **options: "Unpack[AuditOptions]",
) -> "Audit":
    """Measure what the settings find in ``source`` against an exact join of a sample.

    A sample of the documents is compared with all of them: which similar pairs exist, and which of them the bands
    propose. The same corpus always gives the same sample.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A .json file to write the figures to as well.
        sample: Number of documents to sample; all of them if there are no more. The sample is halved while it has more
            than four million pairs.
        overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.

    Returns:
        Recall, precision and the distribution of similarities, with confidence intervals.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.

    >>> import minwise as mw
    >>> texts = ["one two three four five six", "seven eight nine", "One two three four five six seven"]
    >>> result = mw.audit(texts, threshold=0.5)
    >>> result.recall.found, result.recall.of, result.complete
    (1, 1, True)
    """
    from minwise.results.audit import audit_floor, summarise_audit
    from minwise.search.audit_sample import run_audit  # here, because most runs are not audited

    chosen = resolve_options(AuditOptions, source, options)
    size = check_integer("sample", sample, 1, 2**31)
    file = None if output is None else check_path("output", output)
    if file is not None and file.suffix != ".json":
        raise ConfigError(f"output must be a file that ends in .json, got {show(str(output))}")
    with ExitStack() as stack:
        settings, limits = search_settings(chosen), run_limits(chosen)
        corpus = _corpus(chosen, source, settings)
        if file is not None:
            refuse_inputs(file, corpus.sources)
        work = _work(chosen, _manifest(chosen, corpus, settings, "audit"), None, stack)
        job = SearchJob(
            corpus=corpus, settings=settings, limits=limits, work=work, progress=progress_of(chosen["progress"])
        )
        floor = audit_floor(settings.plan.threshold)
        with corpus.unchanged():
            sampled = run_audit(_grouped(chosen, job), sample=size, floor=floor)
        _save_frequencies(chosen, work)
        result = summarise_audit(sampled, settings, floor, recall=chosen["recall"], slots=chosen["slots"])
    if file is not None:
        result.write(file, overwrite=overwrite)
    return result


def estimate_run(source: DocumentSource, **options: "Unpack[DedupOptions]") -> RunEstimate:
    """Estimate what deduplicating ``source`` would do and cost; reads only metadata and a sample.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        exact: Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles.
            max_bucket still limits the pairs of identical documents. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        within: Column, such as language or dump: only rows with the same value are compared. Rows without a value are
            compared with each other.
        across: Column, such as source: only rows with different values are compared. Rows without a value are not
            compared with each other.
        prefer: Values of a column to prefer, the first most, such as source=wiki,books,crawl; rows with other values
            come after them, and keep decides among equals. Numbers are named by their shortest decimal form. A mapping
            of the column to its values is accepted, too.
        protect: Rows that are never removed, such as source=wiki; other rows are removed for them. Several are
            accepted. A mapping of columns to a value or several is accepted, too.
        copies: Documents of each cluster to keep: up to so many, the first ones in keep order. Default: 1.
        drop_all: Keep no document of a cluster of two or more. With group components, these are all documents that have
            a near-duplicate. Default: False.
        mark: Keep every row, and add the columns cluster, cluster_size, cluster_rank, similarity (under its name in
            removed.parquet) and kept. Default: False.
        mark_names: With mark, other names of these columns, such as 'cluster=dup_id kept=keep'. A mapping is accepted,
            too.
        add_weight: Add a column of weights to the kept rows, such as 'weight=min(size, 5)': an expression of size and
            rank in the cluster, and of votes, with + - * / ( ), min, max, log and sqrt.
        votes: Column whose distinct values are counted in each cluster; clusters.parquet gets a column votes, marked
            rows, too.
        target: Documents to keep, as a number such as 1e6 or as a share below 1 of those read: choose the threshold,
            from threshold to 1 in steps of 0.01, that leaves the nearest number.
        against_run: Output directory of an earlier run with the same settings, or several: compare with its kept rows,
            and with those of the runs that it was run against. Saved states are read instead of the rows.
        save_state: Save keys, ids and shingles of the kept rows in OUT/state, so that a later run with against_run
            reads no text of this one. Default: False.
        group: How pairs form clusters: star removes only documents similar to the kept one, components all documents
            that pairs connect. Default: star.
        keep: Document of a cluster to keep: first, last, longest, shortest, max:COL or min:COL. Several, such as
            max:quality,longest,first, decide one after the other where those before are equal. Default: first.
        against: Reference corpus: compared with, never removed and never written.
        update: Index of texts with the same settings: compare with its documents, and add the kept rows to it.

    Returns:
        Estimated documents, candidate pairs, memory, disk and time.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.
    """
    chosen = resolve_options(DedupOptions, source, options)
    _refuse_groups(chosen)
    settings = search_settings(chosen)
    ending_of(chosen, settings)  # reports a wrong value
    corpus = _corpus(chosen, source, settings, earlier=_earlier_runs(chosen, settings))
    return estimate_corpus(without_stored(corpus), settings, run_limits(chosen))


def passages(source: DocumentSource, *, sources: bool = False, **options: "Unpack[PassagesOptions]") -> "pa.Table":
    """Return every passage of at least ``min_tokens`` tokens that stands at an earlier position of the corpus.

    A position is earlier if its document comes first in keep order, or if it comes first in the same document. The
    other side of a passage is its first occurrence. Offsets count code points of the original text. Passages are
    ordered by document and start, and may overlap. Every repeat is found. With ``unit``, passages are whole lines,
    sentences or paragraphs. :func:`write_passages` writes a file instead, of any size.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, or a data frame.
        sources: Add the columns source and row of both documents.
        **options: Settings; see Keyword Args.

    Keyword Args:
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        min_tokens: Minimum number of tokens of a repeated passage, from 1 to 100,000; if not given, 50, or 1 with unit.
        unit: Find repeated whole lines, sentences or paragraphs instead of passages, and count each.
        min_count: With unit, list units that occur at least so many times, the first included; 2 if not given.
        keep: Order in which occurrences count as earlier: first, last, longest, shortest, max:COL or min:COL, or
            several of these, separated by commas. Default: first.
        against: Reference corpus: only passages that stand in it are listed, and none of its own.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.

    Returns:
        An Arrow table with the columns id, start, end, other_id, other_start, other_end and tokens; with ``unit``,
        count too, how often the unit occurs.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.

    >>> import minwise as mw
    >>> mw.passages(["one two three four", "So: one, two, three!"], min_tokens=3).to_pylist()
    [{'id': 1, 'start': 4, 'end': 19, 'other_id': 0, 'other_start': 0, 'other_end': 13, 'tokens': 3}]
    """
    with ExitStack() as stack:
        found = _passages(source, options, stack, None, sources=sources)
        return one_table(found.tables(), found.schema)


def write_passages(
    source: DocumentSource,
    output: PathOrUrl | None,
    *,
    sources: bool = False,
    overwrite: bool = True,
    **options: "Unpack[PassagesOptions]",
) -> dict[str, Any]:
    """Write every repeated passage to a file and return the report of the run.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, or a data frame.
        output: A .parquet, .csv, .tsv or .jsonl file, or its URL; None for a preview in the report instead, ``first``.
        sources: Add the columns source and row of both documents.
        overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.
        **options: Settings; see Keyword Args.

    Keyword Args:
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        min_tokens: Minimum number of tokens of a repeated passage, from 1 to 100,000; if not given, 50, or 1 with unit.
        unit: Find repeated whole lines, sentences or paragraphs instead of passages, and count each.
        min_count: With unit, list units that occur at least so many times, the first included; 2 if not given.
        keep: Order in which occurrences count as earlier: first, last, longest, shortest, max:COL or min:COL, or
            several of these, separated by commas. Default: first.
        against: Reference corpus: only passages that stand in it are listed, and none of its own.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.

    Returns:
        Counts of documents, tokens, covered tokens and passages, and faults.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read.
    """
    with ExitStack() as stack:
        found = _passages(source, options, stack, output, sources=sources)
        if output is None:
            return found.preview()
        write_tables(output, found.tables(), found.schema, overwrite=overwrite)
        return found.report()


def _passages(
    source: DocumentSource,
    given: PassagesOptions,
    stack: ExitStack,
    output: PathOrUrl | None,
    *,
    sources: bool,
) -> PassageTables:
    wanted, options = passage_settings(given), _passage_options(source, given)
    file = local_table_path(output)
    settings, limits = search_settings(options), run_limits(options)
    corpus = _corpus(options, source, settings)
    if file is not None:
        refuse_inputs(file, corpus.sources)
    manifest = {**_manifest(options, corpus, settings, "passages"), **wanted._asdict()}
    work = _work(options, manifest, file, stack)
    progress = progress_of(options["progress"])
    job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=progress)
    engine = _engine(options, limits, manifest, stack)
    with corpus.unchanged():
        found = engine.find_passages(job, wanted, only_reference=options["against"] is not None)
    return PassageTables(found, sources)


def _passage_options(source: DocumentSource, given: Mapping[str, Any]) -> DedupOptions:
    """Return the settings of a search for passages that other searches have, too."""
    if isinstance(source, ShingleSets):
        raise ConfigError("source must be texts for passages, got shingle sets")
    rest = {name: value for name, value in given.items() if name not in definitions(CutOptions)}
    return resolve_options(DedupOptions, source, {"shingle": "word:1", **rest})


def nearest(source: DocumentSource, *, sources: bool = False, **options: "Unpack[NearestOptions]") -> ResultTable:
    """Return the most similar documents of every document, with their exact similarity.

    The result is exact: no bands are involved, so there is no recall. Of equally similar documents the first comes
    first. A document is never listed with itself, and never with one that shares no element with it.
    :func:`minwise.api.write_nearest` writes a file instead, of any size.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        sources: Add the columns source and row of both documents.
        **options: Settings; see Keyword Args.

    Keyword Args:
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        among: Corpus whose documents are listed; if not given, those of the input, without the document.
        top: Number of nearest documents of each document, from 1 to 1,000. Default: 5.
        at_least: Minimum similarity, from 0 to 1; if not given, any element in common is enough.
        mutual: List only pairs of which each is among the nearest of the other. Default: False.
        one_to_one: List each document in one pair at most: pairs are accepted by descending similarity, unless one of
            both is in an accepted pair. Default: False.
        engine: Engine that runs the search: this machine; Apache Spark is refused. Default: local.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.

    Returns:
        An Arrow table with the columns left, right, similarity and rank, ordered by document and rank.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read, or has no documents.

    >>> import minwise as mw
    >>> users = [{"tea", "milk", "honey"}, {"tea", "milk"}, {"coffee", "milk"}]
    >>> mw.nearest(users, shingle="set", top=1).to_pylist()[0]
    {'left': 0, 'right': 1, 'similarity': 0.6666666666666666, 'rank': 1}
    """
    with ExitStack() as stack:
        found = _nearest(source, options, stack, None, sources=sources)
        return nearest_result(found)


def write_nearest(
    source: DocumentSource,
    output: PathOrUrl | None,
    *,
    sources: bool = False,
    overwrite: bool = True,
    **options: "Unpack[NearestOptions]",
) -> dict[str, Any]:
    """Write the most similar documents of every document to a file and return the report of the run.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A .parquet, .csv, .tsv or .jsonl file, or its URL; None for a preview in the report instead, ``first``.
        sources: Add the columns source and row of both documents.
        overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.
        **options: Settings; see Keyword Args.

    Keyword Args:
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        group_by: Column that names the set to which a row belongs.
        item: Column of the item that a row adds to its set; given with group_by.
        weight: Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets
            in lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.
        transpose: Swap the roles of sets and items, to find similar items. Default: False.
        separator: Separator of items in a string; white space on lines of items if not given.
        fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
            accepted, too.
        weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one
            has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        discount: How much an element counts: none counts all alike; common counts an element the less, the more
            documents have it. Similarity is then the weight of the shared elements divided by the weight of all.
            Default: none.
        frequencies: With discount common, a file of frequencies that an earlier run saved, instead of those of these
            documents.
        save_frequencies: With discount common, the file to which the frequencies of the run are saved.
        measure: Measure of two documents: jaccard is the share of the elements of both that they have in common;
            containment is the share of the smaller one, which lies in the larger one, found by an exact join. Default:
            jaccard.
        among: Corpus whose documents are listed; if not given, those of the input, without the document.
        top: Number of nearest documents of each document, from 1 to 1,000. Default: 5.
        at_least: Minimum similarity, from 0 to 1; if not given, any element in common is enough.
        mutual: List only pairs of which each is among the nearest of the other. Default: False.
        one_to_one: List each document in one pair at most: pairs are accepted by descending similarity, unless one of
            both is in an accepted pair. Default: False.
        engine: Engine that runs the search: this machine; Apache Spark is refused. Default: local.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.

    Returns:
        The counts and settings of the run, and the number of pairs.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read, or has no documents.
    """
    with ExitStack() as stack:
        found = _nearest(source, options, stack, output, sources=sources)
        if output is None:
            return found.preview()
        write_tables(output, found.tables(), found.schema, overwrite=overwrite)
        return found.report()


def _nearest(
    source: DocumentSource, given: NearestOptions, stack: ExitStack, output: PathOrUrl | None, *, sources: bool
) -> NearestTables:
    wanted, options = nearest_settings(given), _nearest_options(source, given)
    file = local_table_path(output)
    settings, limits = search_settings(options), run_limits(options)
    corpus = _corpus(options, source, settings, reference="among")
    if file is not None:
        refuse_inputs(file, corpus.sources)
    manifest = {**_manifest(options, corpus, settings, "nearest"), **wanted._asdict()}
    work = _work(options, manifest, file, stack)
    progress = progress_of(options["progress"])
    job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=progress)
    with corpus.unchanged():
        found = find_nearest(_grouped(options, job), wanted)
    _save_frequencies(options, found.work)
    return NearestTables(found, sources)


def _nearest_options(source: DocumentSource, given: Mapping[str, Any]) -> DedupOptions:
    """Return the settings of a search for nearest documents that other searches have, too."""
    own = (*NearestSettings._fields, "among", "engine")
    rest = {name: value for name, value in given.items() if name not in own}
    options = resolve_options(DedupOptions, source, {**rest, "exact": True, "against": given.get("among")})
    if groups_rows(options) and options["against"] is not None:
        name = "group_by" if options["group_by"] is not None else "transpose"
        raise ConfigError(f"among must be left out with {name}, which groups the rows of one corpus")
    return options


def decontaminate(
    train: DocumentSource,
    evals: DocumentSource,
    output: PathOrUrl | None = None,
    *,
    overwrite: bool = False,
    audit: bool = False,
    **options: "Unpack[DecontaminateOptions]",
) -> DecontaminationResult:
    """Find the training rows that contain evaluation items, and remove, cut or mark them.

    Every token of the training rows is looked up in an exact table of the n-grams of all items. N-grams that are common
    in the training rows do not count. An item with fewer tokens than an n-gram is looked for as a whole; one with fewer
    than five, or without any rare n-gram, is listed as not checkable.

    Args:
        train: Paths or globs, a list of texts, rows, an Arrow table or stream, or a data frame.
        evals: The evaluation items, in any of these forms.
        output: A new directory for kept rows, tables and reports, or its URL; only results in memory if not given.
        overwrite: Whether an output that is not empty may be replaced.
        audit: Measure recall on items that are planted in a sample of the rows, and precision.
        **options: Settings; see Keyword Args.

    Keyword Args:
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        text_column: Column of the text; several are joined by a line break. With sets, the column of their items.
            Default: text.
        id_column: Column of the id; if not given, id where a source has it, otherwise source:row.
        format: Format of files whose names do not show it: text is one document per file, lines one per line; baskets
            and named-baskets have a set of items on each line.
        delimiter: Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes.
        encoding: Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes.
            Kept rows are written in it.
        on_error: What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of
            which no row can be read; quarantine lists them; skip leaves them out. Default: fail.
        memory: Memory for data, in bytes or such as 4GB; the process takes up to 300MB more. Default: 4GB.
        threads: Number of threads; all cores if not given.
        work: Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped.
        progress: True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function
            is called with (stage, done, total, unit) at the start of a stage and after every step; total is None if
            unknown. A minwise.progress.Progress receives the start and the end of each stage, too.
        engine: Engine that runs the search: this machine, or Apache Spark; same result. Default: local.
        master: Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that
            of Spark's own configuration.
        spark_conf: Spark configuration properties by name.
        ngram: Tokens of an n-gram, from 5 to 100. An item with fewer tokens must be in a row as a whole. Default: 13.
        action: What to do with contaminated rows: remove removes them; cut removes the matched spans, and rows without
            any text left; mark keeps all rows and adds the columns contaminated, eval_id and share. Default: remove.
        min_share: Minimum share of the rare n-grams of an item that a contaminated row has. Default: 0.1.
        min_ngrams: Number of rare n-grams of an item that is enough, too, whatever their share.
        common_share: Share of the rows, copies counted once, above which an n-gram is common and does not count.
            Applies above common_count. Default: 0.001.
        common_count: Number of rows, copies counted once, up to which no n-gram is common. Default: 20.
        eval_columns: Columns of the evaluation items, such as question,answer. Each column is an item of its own.
            Default: text.
        eval_id_column: Column of the id of an evaluation row; if not given, id where a file has it, else source:row.
        html: Texts are HTML pages: ignore markup, scripts and styles. Default: False.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.

    Returns:
        The kept and removed rows, all hits, items that cannot be checked, and the report.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
        InputError: If a source cannot be read, or no item can be checked.

    >>> import minwise as mw
    >>> question = "How many of the seven bridges of the old town lead to the island in the river?"
    >>> result = mw.decontaminate([f"Quiz. {question} Answer: five.", "The town has bridges."], [question])
    >>> result.kept
    ['The town has bridges.']
    >>> result.hits.to_pylist()[0]["spans"]
    [{'start': 6, 'end': 83, 'eval_start': 0, 'eval_end': 77}]
    """
    train, evals = reusable(train), reusable(evals)
    chosen, rule = _decontamination_options(train, options)
    watch = Stopwatch(progress_of(chosen["progress"]))
    folder = None if output is None else output_of(output)
    with ExitStack() as session, ExitStack() as stack:
        settings, limits = search_settings(chosen), run_limits(chosen)
        _refuse_nesting(folder, chosen["work"])
        corpus = _corpus(chosen, train, settings)
        given = eval_columns(options.get("eval_columns", "text"))
        corpora = [_eval_corpus(chosen, evals, column, options.get("eval_id_column")) for column in given]
        _refuse_training_rows(corpus, corpora[0])
        _check_edits(corpus, rule.action)
        values = {**rule.to_dict(), "eval_columns": list(given), "audit": check_type("audit", audit, bool)}
        manifest = {**_manifest(chosen, corpus, settings, "decontaminate"), **values}
        manifest["evals"] = corpora[0].fingerprint()
        work = _work(chosen, manifest, folder if isinstance(folder, Path) else None, stack)
        published = folder is not None and is_published(work, folder)
        if folder is not None and not published:
            check_output(folder, [*corpus.sources, *corpora[0].sources], overwrite=overwrite)
        run = RunRecord.begin(corpus, manifest, {**recorded_options(chosen), **values}, watch)
        run = run.with_evals(corpora[0].sources, manifest["evals"])
        engine = _engine(chosen, limits, manifest, session)
        job = SearchJob(corpus=corpus, settings=settings, limits=limits, work=work, progress=watch)
        select = row_selector(train) if is_in_memory(corpus.sources[-1]) else None

        def search() -> DecontaminationResult:
            with corpus.unchanged():
                found = engine.find_contamination(job, read_items(corpora, limits.memory), rule)
                measured = audit_contamination(job, found) if audit else None
            return DecontaminationResult(
                found,
                settings={**values, **_text_settings(settings)},
                engine=engine,
                run=run,
                published=published,
                select=select,
                audit=measured,
            )

        result = _written(search, corpus, work, None if published else output, chosen, overwrite=overwrite)
        watch.stop()
        result.own(session.pop_all())
        if work.temporary:
            result.own(stack.pop_all())
    return result


def _decontamination_options(
    train: DocumentSource, given: DecontaminateOptions
) -> tuple[DedupOptions, ContaminationRule]:
    """Return the options of the search and the rule of a call."""
    named = with_defaults(DecontaminateOptions, given)
    if isinstance(train, ShingleSets):
        raise ConfigError("train must be texts, got shingle sets")
    shared = {name: named[name] for name in SHARED_NAMES}
    options = resolve_options(DedupOptions, train, {"shingle": "word:1", **shared})
    return options, contamination_rule(named)


def _check_edits(corpus: Corpus, action: str) -> None:
    """Raise if rows cannot be cut or marked."""
    if action == "cut":
        check_cuts_possible(corpus.columns, "action='cut'")
    for source in corpus.sources if action == "mark" else ():
        check_added(source, MARKS)


def _text_settings(settings: SearchSettings) -> dict[str, Any]:
    """Return the settings that decide the tokens of a text."""
    assert settings.shingler is not None  # the settings of a decontamination have one
    html = {"html": True} if settings.html else {}
    return {name: value for name, value in settings.shingler.settings.items() if name != "bag"} | html


def _eval_corpus(options: DedupOptions, evals: DocumentSource, column: str, id_column: str | None) -> Corpus:
    """Open the evaluation files to read one column of them."""
    columns = Columns.of(column, id_column)
    if evals == "-" or (isinstance(evals, Files) and "-" in evals):
        raise ConfigError("evals must be files or data in memory, got - (standard input); save it to a file")
    opened = open_sources(evals, columns, None)
    for each in opened.sources:
        each.name = each.name or "evals"
        each.limit_memory(run_limits(options).memory)
    return Corpus(sources=opened.sources, columns=columns, on_error=options["on_error"]).note_files()


def _refuse_training_rows(train: Corpus, evals: Corpus) -> None:
    """Raise if a file is both training data and evaluation items: all of its rows would be contaminated."""
    inputs = {os.path.realpath(path): path for source in train.sources for path in source.paths()}
    for path in (path for source in evals.sources for path in source.paths()):
        if path and os.path.realpath(path) in inputs:
            raise ConfigError(f"evals must not be training data, got {path} as both; leave it out of one of them")


def _search(
    source: DocumentSource,
    options: DedupOptions,
    stack: ExitStack,
    output: PathOrUrl | None,
    needed: Needed = "pairs",
) -> SearchResult:
    file = local_table_path(output)
    settings, limits = search_settings(options), run_limits(options)
    corpus = _corpus(options, source, settings)
    if file is not None:
        refuse_inputs(file, corpus.sources)
    manifest = _manifest(options, corpus, settings, "pairs")
    work = _work(options, manifest, file, stack)
    job = SearchJob(
        corpus=corpus, settings=settings, limits=limits, work=work, progress=progress_of(options["progress"])
    )
    engine = _engine(options, limits, manifest, stack)
    with corpus.unchanged():
        found = engine.find(_grouped(options, job), needed=needed)
    _refuse_empty_table(*(not counts["read"] for counts in (found.documents.table_counts() or {}).values()))
    _save_frequencies(options, found.work)
    return found


def _save_frequencies(options: DedupOptions, work: WorkDirectory) -> None:
    """Save the frequencies of elements to the file that the settings name, if they name one."""
    if options["save_frequencies"] is not None:
        read_frequencies(work).save(options["save_frequencies"])


def _earlier_runs(options: DedupOptions, settings: SearchSettings) -> EarlierRuns:
    """Open the earlier runs that the settings name."""
    columns = columns_to_read(options, settings)
    stored = not runs_on_spark(options) and not any(column.of_references for column in columns.values)
    return open_earlier_runs(options["against_run"], settings, columns, stored=stored)


def _update(
    options: DedupOptions, settings: SearchSettings, output: Output | None, stack: ExitStack
) -> "IndexUpdate | None":
    """Open the index that the settings name; it stays open as long as the stack."""
    if options["update"] is None:
        return None
    from minwise.index.update import open_update  # here, because few calls have an index

    check_stored_keys(options, settings, "update")
    path = check_path("update", options["update"])
    if output is None:
        raise ConfigError("output must be a directory with update, which adds what is kept, got none")
    return open_update(path, settings, run_limits(options).threads, stack)


def _has_state(options: DedupOptions, output: Output) -> bool:
    """Return whether a finished output has the state that is to be saved, if one is."""
    return not options["save_state"] or (isinstance(output, Path) and StoredState.exists(output))


def _check_state(options: DedupOptions, settings: SearchSettings, corpus: Corpus, output: Output | None) -> None:
    """Raise ConfigError if the state of the run cannot be saved."""
    if not check_type("save_state", options["save_state"], bool):
        return
    check_stored_keys(options, settings, "save_state")
    refuse_loose_files(corpus.sources[corpus.against :])
    if isinstance(output, RemoteOutput):
        raise ConfigError(f"save_state must be left out with an output at a URL, got {output}; give a directory")


def _corpus(
    options: DedupOptions,
    source: DocumentSource,
    settings: SearchSettings,
    reference: str = "against",
    earlier: EarlierRuns | None = None,
    update: "IndexUpdate | None" = None,
) -> Corpus:
    """Open all sources in document order: those of earlier runs, of ``against`` or ``among``, then the others.

    Args:
        options: All settings of a call.
        source: The input.
        settings: The settings of the search.
        reference: Name of a reference corpus in memory.
        earlier: The earlier runs.
        update: The index that is compared with.
    """
    columns = columns_to_read(options, settings)
    text_settings = TextSettings.of(options["delimiter"], options["encoding"])
    _refuse_standard_input(options, source)
    _refuse_work_inside(options["work"], source)
    opened = open_sources(source, columns, options["format"])
    against, second = OpenedSources([]), second_table(options)
    given = options["against"] if second is None else second
    if given is not None:
        against = open_sources(given, columns, options["format"])
        for each in against.sources:
            each.name = each.name or (reference if second is None else "among")
    if second is not None:
        _refuse_same_files(opened, against)
        _refuse_empty_table(*(all(each.known_rows() == 0 for each in table.sources) for table in (opened, against)))
    sources = [*against.sources, *opened.sources]
    text_settings.check_used(sources)
    text_settings.apply(sources)
    before = [*([] if update is None else [update.source]), *([] if earlier is None else earlier.sources)]
    sources = [*before, *sources]
    for each in sources:
        each.limit_memory(run_limits(options).memory)
    return Corpus(
        sources=sources,
        columns=columns,
        against=len(before) + len(against.sources),
        linked=second is not None,
        on_error=options["on_error"],
        root=opened.root,
        format=options["format"],
        text_settings=text_settings,
        skipped=dict(Counter(opened.skipped) + Counter(against.skipped)),
    ).note_files()


def _refuse_standard_input(options: DedupOptions, source: DocumentSource) -> None:
    """Raise if standard input is given where it would have to be read by other machines, or again."""
    references = options["against"], second_table(options)
    given = [paths for paths in (source, *references) if isinstance(paths, (str, Files))]
    piped = [paths for paths in given if paths == "-" or (isinstance(paths, Files) and "-" in paths)]
    if len(piped) > 1:
        raise ConfigError("standard input (-) must be one of the two tables, got it as both; save one to a file")
    if runs_on_spark(options) and piped:
        raise ConfigError("engine must be local with - as input: Spark cannot read it; save it to a file")
    if options["work"] is not None and piped:
        raise ConfigError("work must be left out with - as input: standard input cannot be read again")


def _refuse_same_files(first: OpenedSources, second: OpenedSources) -> None:
    """Raise if a file is in both of two linked tables: each of its documents would be a pair with itself."""
    inputs = {os.path.realpath(path) for source in first.sources for path in source.paths() if path}
    for path in (path for source in second.sources for path in source.paths() if path):
        if os.path.realpath(path) in inputs:
            raise ConfigError(f"among must be other files, got {path} in both tables; leave it out of one of them")


def _refuse_empty_table(first: bool = False, second: bool = False) -> None:
    """Raise if one of two linked tables has no rows.

    Args:
        first: Whether the first table has none.
        second: Whether the second table has none.
    """
    if first or second:
        name = "the first table" if first else "among"
        raise InputError(f"two tables can be linked only if both have rows, got none in {name}")


def _refuse_work_inside(work: PathOrUrl | None, source: DocumentSource) -> None:
    """Raise if the work directory lies in an input directory, which would read its files."""
    if work is None:
        return
    inputs = source if isinstance(source, Files) else [source]
    if is_url(work):
        if any(is_url(given) and f"{work}/".startswith(f"{str(given).rstrip('/')}/") for given in inputs):
            raise ConfigError(f"work must not lie in an input directory, got {work}")
        return
    real = Path(os.path.realpath(check_path("work", work)))
    for given in inputs:
        folder = Path(os.path.realpath(given)) if isinstance(given, (str, os.PathLike)) and given else None
        if folder is not None and folder.is_dir() and folder in real.parents:
            raise ConfigError(f"work must not lie in an input directory, got {work} in {given}")


def _grouped(options: DedupOptions, job: SearchJob) -> SearchJob:
    """Return the job, or the same job on the groups of its rows."""
    return group_rows(job, bag=options["bag"] or options["weight"] is not None) if groups_rows(options) else job


def _refuse_groups(options: DedupOptions) -> None:
    """Raise if documents are groups of rows, which cannot be removed from their files."""
    if not groups_rows(options):
        return
    search_settings(options)  # reports a wrong value first
    name = "group_by" if options["group_by"] is not None else "transpose"
    value = options["group_by"] if options["group_by"] is not None else options["transpose"]
    rule = f"{name} must be left out with dedup: a group consists of several rows"
    raise ConfigError(f"{rule}, got {show(value)}; use pairs or clusters")


def _refuse_nesting(output: Output | None, work: PathOrUrl | None) -> None:
    """Raise if the output directory and the work directory contain each other."""
    if output is None or work is None:
        return
    check_path("work", work)
    first, second = (f"{path if is_url(path) else os.path.realpath(path)}/" for path in (str(output), str(work)))
    if first.startswith(second) or second.startswith(first):
        rule = "work must not be, hold or lie in the output"
        raise ConfigError(f"{rule}, got {work} and {output}; give another work")


def _manifest(options: DedupOptions, corpus: Corpus, settings: SearchSettings, task: str) -> dict[str, Any]:
    """Return what identifies a run; finished stages of any other run are refused."""
    prints = corpus.fingerprint()
    return {
        "task": task,
        "engine": options["engine"],
        "settings": settings.to_dict(),
        "columns": {"text": list(corpus.columns.text), "id": corpus.columns.id},
        "format": corpus.format,
        **asdict(corpus.text_settings),
        "on_error": corpus.on_error,
        "against": prints[: corpus.against],
        "inputs": prints[corpus.against :],
        **({"among": True} if corpus.linked else {}),
    }


def _work(options: DedupOptions, manifest: dict[str, Any], output: Path | None, stack: ExitStack) -> WorkDirectory:
    """Open the work directory; with Spark, executors use that of a URL, and the driver a temporary one."""
    given = None if is_url(options["work"]) and runs_on_spark(options) else options["work"]
    return stack.enter_context(choose_workdir(given, manifest, output))


def _engine(options: DedupOptions, limits: RunLimits, manifest: dict[str, Any], stack: ExitStack) -> Engine:
    """Return the engine; a Spark session that is started for it lasts as long as the stack."""
    if not runs_on_spark(options):
        return LocalEngine()
    from minwise.spark.engine import SparkEngine  # here, because Spark is an extra
    from minwise.spark.session import spark_session

    session = stack.enter_context(spark_session(options["master"], options["spark_conf"], memory=limits.memory))
    return SparkEngine(session, str(options["work"]) if is_url(options["work"]) else None, manifest)
