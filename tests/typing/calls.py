"""Calls of the public API that type checkers accept, and, marked ``# wrong``, calls that they reject.

The file is only checked, never run.
"""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

import minwise as mw
from minwise.api import write_nearest
from minwise.errors import ConfigError
from minwise.inputs import Files
from minwise.progress import NullProgress
from minwise.results import Audit, CutResult, DecontaminationResult, DedupResult, ResultTable
from minwise.sketches import slots_for

TEXTS = ["one two three four five six", "One, two, three, four, five, six."]

# Correct calls; each result has one type.
result: DedupResult = mw.dedup(TEXTS)
result = mw.dedup(Path("corpus.parquet"), "clean", overwrite=True, threshold=0.7, keep="max:score", group="components")
result = mw.dedup(Files(["crawl/", "more/*.jsonl"]), against="seen.jsonl", on_error="quarantine", memory="2GB")
result = mw.dedup("new.jsonl", "out", against_run=["monday", Path("tuesday")], save_state=True, update="seen.mw")
result = mw.dedup(TEXTS, mask_digits=True, lowercase=False)
result = mw.dedup([{"id": 1, "text": "one"}], verify="signature", scheme="minhash", threads=2, work=Path("work"))
result = mw.dedup(TEXTS, copies=3, mark=True, mark_names={"cluster": "dup_id"}, votes="dump", target=1e6)
result = mw.dedup(TEXTS, drop_all=True, mark=True, mark_names="kept=keep", add_weight="weight=min(size, 5)")
mw.dedup(TEXTS, keep="max:score,longest", prefer={"site": ["wiki", 7]}, protect=["site=wiki", "lang=de"])
cut: CutResult = mw.dedup(TEXTS, passages=True, min_tokens=20, snap="line", min_left=5, keep="last")
table: ResultTable = mw.pairs(TEXTS, threshold=0.5, shingle=mw.Shingler("char:5"), exact=True, sources=True)
table = mw.pairs(TEXTS, measure="containment")
table = mw.clusters(TEXTS, discount="common", frequencies=Path("old"), save_frequencies="new")
table = mw.pairs(TEXTS, among=["a register"], fields={"name": "char:3"}, field_similarities=True)
table = mw.clusters(TEXTS, among="register.csv", group="star")
table = mw.clusters(TEXTS, group="star")
table = mw.clusters("pages.csv", within="dump")
result = mw.dedup("pages.csv", across="source")
table = result.removed
plain: pa.Table = table.to_arrow()
kept: list[str] = result.kept  # of any type: that of the input
report: dict[str, object] = mw.write_pairs(TEXTS, "pairs.parquet", truth="entity", fields={"name": "char:3"})
report = mw.write_clusters(TEXTS, Path("clusters.csv"), group="star", format="jsonl")
table = mw.pairs("in.csv", delimiter=";", encoding="cp1252")
plain = mw.passages(TEXTS, unit="line", min_count=5)
table = mw.nearest(TEXTS, among="known.jsonl", top=3, at_least=0.2, mutual=True, one_to_one=True, sources=True)
report = write_nearest(TEXTS, "nearest.parquet", fields={"name": "char:3"}, weights={"name": 2})
measured: Audit = mw.audit(TEXTS, "audit.json", sample=100, recall=0.9)
clean: DecontaminationResult = mw.decontaminate(TEXTS, "evals.jsonl", "clean", eval_columns="question,answer")
clean = mw.decontaminate(TEXTS, TEXTS, action="cut", ngram=8, min_ngrams=3, audit=True)
planned_bands: int = mw.plan(0.8, 0.99, slots=128).bands
similarity: float = mw.jaccard({1, 2}, {2, 3})
slots: int = slots_for(0.05)
shared: float = mw.compare("one two", "one three").similarity
error: type[mw.MinwiseError] = ConfigError
with mw.Index.create("news.mw", threshold=0.7, store_text=True, seed=None) as index:
    first_hits = index.query("one two three", max_candidates=100).hits
    side: str | None = index.query("one two three", measure="containment")[0].contained
mw.audit(TEXTS, discount="common")
mw.pairs([["a"], ["a", "b"]], shingle="set", weights={"a": 1.5})
mw.pairs([[1], [1, 2]], shingle="set", weights={1: 1.5})
mw.Index.create("x.mw", assign=True).clusters()
mw.Index.create("people.mw", fields={"name": "char:3"}, weights={"name": 2}).query({"name": "Ann"}, 0)


def note(stage: str, done: int, total: int | None, unit: str) -> None:
    """Receive progress."""


result = mw.dedup(TEXTS, progress=True)
result = mw.dedup(TEXTS, progress=note)
result = mw.dedup(TEXTS, progress=NullProgress())

# Wrong calls.
index.query("one two three", max_candidates="all")  # wrong: a string for a number
mw.dedup(TEXTS, treshold=0.5)  # wrong: misspelt setting
mw.decontaminate(TEXTS, TEXTS, action="delete")  # wrong: not a choice
mw.dedup(TEXTS, threshold="x")  # wrong: a string for a number
mw.dedup(TEXTS, group="stars")  # wrong: not a choice
mw.dedup(TEXTS, measure="cosine")  # wrong: not a choice
mw.pairs(TEXTS, discount="rare")  # wrong: not a choice
mw.audit(TEXTS, within="dump")  # wrong: not a setting of audit
mw.pairs(TEXTS, across=True)  # wrong: a flag for a name
mw.audit(TEXTS, discount="rare")  # wrong: not a choice
mw.pairs([["a"]], shingle="set", weights=2)  # wrong: a number for a mapping
mw.Index.create("x.mw", assign="yes")  # wrong: a string for a flag
mw.clusters(TEXTS, measure="containment")  # wrong: not a setting of clusters
mw.dedup(TEXTS, verify=True)  # wrong: a flag for a choice
mw.dedup(TEXTS, on_error="ignore")  # wrong: not a choice
mw.dedup(TEXTS, engine="dask")  # wrong: not a choice
mw.passages(TEXTS, unit="word")  # wrong: not a choice
mw.dedup(TEXTS, threads="all")  # wrong: a string for a number
mw.dedup(5)  # wrong: a number is not a source
mw.dedup(TEXTS, 5)  # wrong: a number is not a path
mw.dedup(TEXTS, html="yes")  # wrong: a string for a flag
mw.dedup(TEXTS, mask_digits="yes")  # wrong: a string for a flag
mw.dedup(TEXTS, progress="yes")  # wrong: neither a flag nor a function
mw.dedup(TEXTS, progress=len)  # wrong: a function of one argument
mw.dedup()  # wrong: no source
mw.dedup(TEXTS, passages=True, snap="word")  # wrong: not a choice
mw.dedup(TEXTS, passages=True, threshold=0.5)  # wrong: no near-duplicates are searched
mw.dedup(TEXTS, min_tokens=20)  # wrong: only with passages
mw.pairs(TEXTS, "pairs.parquet")  # wrong: pairs writes no file
mw.pairs(TEXTS, keep="first")  # wrong: pairs keeps nothing
mw.pairs(TEXTS, copies=2)  # wrong: as above
mw.dedup(TEXTS, mark="yes")  # wrong: a truth value
mw.pairs(TEXTS, protect="site=wiki")  # wrong: pairs removes nothing
mw.dedup(TEXTS, prefer=["site=wiki"])  # wrong: one column with its values
mw.pairs(TEXTS, among=5)  # wrong: not a source
mw.pairs(TEXTS, against=TEXTS)  # wrong: a second table is given with among
mw.dedup(TEXTS, against_run=7)  # wrong: the directory of a run
mw.pairs(TEXTS, against_run="out")  # wrong: pairs has no earlier run
mw.dedup(TEXTS, among=TEXTS)  # wrong: dedup has against
mw.pairs(TEXTS, truth="entity")  # wrong: only write_pairs has a report
mw.clusters(TEXTS, against=TEXTS)  # wrong: clusters has no reference corpus
mw.clusters(TEXTS, group=None)  # wrong: None is not a choice
mw.write_pairs(TEXTS)  # wrong: no output
mw.write_pairs(TEXTS, "pairs.parquet", format="xls")  # wrong: not a choice
mw.pairs("in.csv", delimiter=5)  # wrong: not a string
mw.audit(TEXTS, exact=True)  # wrong: an audit has nothing to join
mw.audit(TEXTS, sample="all")  # wrong: a string for a number
mw.audit(TEXTS, engine="spark")  # wrong: an audit runs locally
mw.nearest(TEXTS, top="all")  # wrong: a string for a number
mw.nearest(TEXTS, threshold=0.5)  # wrong: nearest has no threshold
mw.nearest(TEXTS, among=5)  # wrong: a number is not a source
write_nearest(TEXTS)  # wrong: no output
mw.plan("0.8")  # wrong: a string for a number
mw.plan(0.8, band=3)  # wrong: misspelt setting
slots_for("0.05")  # wrong: a string for a number
mw.compare("one", 2)  # wrong: a number is not a text
mw.Shingler(5)  # wrong: a number is not a specification
mw.FastSketch(slots="many")  # wrong: a string for a number
mw.Index.create("news.mw", store_text="yes")  # wrong: not a truth value
mw.Index.create("people.mw", fields=3)  # wrong: a number for fields
mw.Index.create("news.mw", store="text")  # wrong: not a setting
mw.Index.create("news.mw", treshold=0.7)  # wrong: misspelt setting
mw.restore("clean", ids=["a"])  # wrong: no destination
text: str = mw.dedup(TEXTS)  # wrong: a result is not a string
rows: list[str] = mw.write_pairs(TEXTS, "pairs.parquet")  # wrong: a report is not a list
missing = mw.Files(["a"])  # wrong: not a public name of the package itself
