"""minwise decontaminate: actions, tables, thresholds, restore, errors and resumed runs."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, USAGE, Done, Job, run
from support.restored_runs import contents

import minwise as mw
from minwise.errors import InputError
from minwise.results import ContaminationExplanation

QUESTION = "How many of the seven bridges of the old town lead to the island in the river?"
OTHER = "A baker fills seven trays with twelve rolls each and sells all but nine"
FOOTER = "Published under the terms of the town library and all rights are reserved"
ROWS = {
    "quiz": f"Quiz! {QUESTION} Five.",
    "clean": "The town has bridges.",
    "copy": QUESTION,
    "rolls": f"(1) {OTHER.upper()}. (2) Nothing.",
}


def write_rows(path: Path, rows: dict[str, Any], **more: Any) -> None:  # noqa: ANN401 - columns
    lines = (json.dumps({"id": name, "text": text, **more}) for name, text in rows.items())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "train.jsonl", ROWS)
    items = [("q1", QUESTION, "five"), ("q2", OTHER, f"{FOOTER} today")]
    lines = (json.dumps({"name": name, "question": question, "answer": answer}) for name, question, answer in items)
    (tmp_path / "evals.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def decontaminate(folder: Path, *arguments: str, out: str = "out", job: Job | None = None) -> Done:
    columns = ("--eval-columns", "question,answer", "--eval-id-column", "name")
    given = ("train.jsonl", "--evals", "evals.jsonl", *columns, "-o", out, "--quiet", *arguments)
    return run(folder, "decontaminate", *given, job=job or Job())


def kept(folder: Path, out: str = "out") -> dict[str, dict[str, Any]]:
    rows = map(json.loads, (folder / out / "kept" / "train.jsonl").read_text(encoding="utf-8").splitlines())
    return {row.pop("id"): row for row in rows}


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "out" / f"{name}.parquet").to_pylist()
    return rows


def test_contaminated_rows_are_removed_with_their_item_and_spans(folder: Path) -> None:
    done = decontaminate(folder)
    assert (done.status, done.out, done.err) == (OK, "", "")
    assert kept(folder) == {"clean": {"text": ROWS["clean"]}}
    removed = table(folder, "removed")
    assert [(row["id"], row["eval_id"], row["eval_column"], row["share"]) for row in removed] == [
        ("quiz", "q1", "question", 1.0),
        ("copy", "q1", "question", 1.0),
        ("rolls", "q2", "question", 1.0),
    ]
    assert table(folder, "hits") == removed
    [span] = removed[0]["spans"]
    assert ROWS["quiz"][span["start"] : span["end"]] == QUESTION[span["eval_start"] : span["eval_end"]] == QUESTION[:-1]
    [uncheckable] = table(folder, "uncheckable")
    assert (uncheckable["eval_id"], uncheckable["eval_column"], uncheckable["tokens"]) == ("q1", "answer", 1)
    assert uncheckable["reason"] == "fewer than 5 tokens"
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["counts"] | {"read": 4, "kept": 1, "removed": 3, "contaminated": 3} == report["counts"]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert f"<mark>{QUESTION[:-1]}</mark>? Five." in page


# Leaves no room in the cache of texts, and makes every input too large to be read whole for the page.
NO_CACHE = Job(constants={"minwise.search.contamination.CACHE_SHARE": 10**15})


def page_of(folder: Path) -> str:
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


def check_page(folder: Path) -> None:
    """Check that the page has both sides of all three hits."""
    page = page_of(folder)
    assert page.count(f"<mark>{QUESTION[:-1]}</mark>? Five.") == 1
    assert page.count(f"<mark>{OTHER.upper()}</mark>") == 1
    assert page.count(f"<mark>{QUESTION[:-1]}</mark>?") == 4
    assert "read again</span>" not in page


def test_the_page_shows_rows_that_are_not_in_the_cache(folder: Path) -> None:
    assert decontaminate(folder, job=NO_CACHE).status == OK
    check_page(folder)


def test_the_page_shows_rows_of_standard_input(folder: Path) -> None:
    job = Job(constants=NO_CACHE.constants, stdin="train.jsonl")
    columns = ("--eval-columns", "question,answer", "--eval-id-column", "name")
    given = ("--evals", "evals.jsonl", *columns, "-o", "out", "--quiet")
    assert run(folder, "decontaminate", "-", *given, job=job).status == OK
    check_page(folder)


def test_the_page_of_a_resumed_run_shows_the_rows(folder: Path) -> None:
    """Also of an input that is too large for a run to read it whole a second time."""
    write_rows(folder / "train.jsonl", {**ROWS, "large": "word " * 10**6})
    for _ in range(2):
        assert decontaminate(folder, "--work", "work", "--overwrite").status == OK
        check_page(folder)
        shutil.rmtree(folder / "out")


def test_the_page_shows_a_hit_far_behind_the_start_of_a_row(folder: Path) -> None:
    write_rows(folder / "train.jsonl", {**ROWS, "long": f"{'é word ' * 9000}. {QUESTION} Six."})
    assert decontaminate(folder, job=NO_CACHE).status == OK
    page = page_of(folder)
    assert f"<mark>{QUESTION[:-1]}</mark>? Six." in page
    assert len(page) < 60_000


def test_cached_rows_are_not_read_again_for_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def read(_sources: object, _columns: object, rows: list[tuple[int, int]], _convert: object) -> list[object]:
        asked.extend(rows)
        return []

    monkeypatch.setattr("minwise.results.contamination.read_rows", read)
    train, evals = (str(folder / name) for name in ("train.jsonl", "evals.jsonl"))
    mw.decontaminate(train, evals, folder / "out", eval_columns="question")
    assert asked == []
    assert f"<mark>{QUESTION[:-1]}</mark>? Five." in page_of(folder)


def test_every_row_is_listed_as_kept_or_not_and_contaminated_or_not(folder: Path) -> None:
    assert decontaminate(folder, "--action", "cut").status == OK
    rows = [(row["id"], row["kept"], row["contaminated"]) for row in table(folder, "documents")]
    assert rows == [("quiz", True, True), ("clean", True, False), ("copy", False, True), ("rolls", True, True)]


@pytest.mark.parametrize("action", ["remove", "cut", "mark"])
def test_the_page_is_written_again(folder: Path, action: str) -> None:
    assert decontaminate(folder, "--action", action, "--audit").status == OK
    before = page_of(folder)
    (folder / "out" / "report.html").unlink()
    done = run(folder, "report", "out")
    assert (done.status, done.out, done.err) == (OK, "out/report.html: open it in a browser\n", "")
    main = [page[page.index('id="hits"') : page.index('id="timing"')] for page in (before, page_of(folder))]
    assert main[1] == main[0]
    assert "Recall" in main[0]
    check_page(folder)


def test_the_best_hit_of_each_row_is_shown_again(folder: Path) -> None:
    """Over several pieces of the table: of the largest share, and the first rows of those."""
    texts = [f"{QUESTION} {OTHER[: 8 * (row % 9)]}" for row in range(50)]
    write_rows(folder / "train.jsonl", {f"r{row}": text for row, text in enumerate(texts)})
    assert decontaminate(folder, "--common-count", "100", "--ngram", "5").status == OK
    assert len(table(folder, "hits")) > 60
    before = page_of(folder)
    assert run(folder, "report", "out", job=Job(constants={"minwise.results.finished_run.TABLE_ROWS": 7})).status == OK
    hits = [page[page.index('id="hits"') : page.index('id="sources"')] for page in (before, page_of(folder))]
    assert hits[1] == hits[0]


def test_texts_of_changed_files_are_left_out_with_a_note(folder: Path) -> None:
    assert decontaminate(folder).status == OK
    with (folder / "evals.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    done = run(folder, "report", "out")
    assert done.err.startswith("note: Some texts are not shown: evals.jsonl has changed since the run: ")
    assert (done.status, done.err.count("\n")) == (OK, 1)
    assert page_of(folder).count("could not be read again") == 3
    assert (folder / "out" / "report-with-texts.html").is_file()
    explained = run(folder, "explain", "out", "quiz")
    assert "evals.jsonl has changed since the run" in explained.out
    assert QUESTION[:50] in explained.out
    (folder / "train.jsonl").unlink()
    assert run(folder, "report", "out").status == OK
    assert page_of(folder).count("could not be read again") == 6


@pytest.mark.parametrize("command", [["report", "out"], ["explain", "out", "quiz"]])
@pytest.mark.parametrize(
    ("key", "value"),
    [("items", {}), ("most_found", [{}]), ("settings", {}), ("audit", {}), ("unreadable", [1]), ("counts", {})],
)
def test_a_damaged_report_is_refused_in_one_line(folder: Path, command: list[str], key: str, value: object) -> None:
    assert decontaminate(folder).status == OK
    path = folder / "out" / "report.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), key: value}), encoding="utf-8")
    done = run(folder, *command)
    assert (done.status, done.err.count("\n")) == (FAILURE, 1)
    assert f"report.json: must be written by minwise decontaminate: {key}" in done.err


def test_an_audit_of_near_duplicates_is_refused(folder: Path) -> None:
    assert decontaminate(folder).status == OK
    done = run(folder, "report", "out", "--audit", "audit.json")
    expected = "out: audit must be left out, got audit.json: its report has figures of its own"
    assert (done.status, done.err) == (USAGE, f"minwise: {expected}\n")


def explained(folder: Path, row: str) -> list[str]:
    done = run(folder, "explain", "out", row)
    assert (done.status, done.err) == (OK, "")
    return done.out.splitlines()


@pytest.mark.parametrize(
    ("action", "decision"),
    [
        ("remove", "removed: it contains 1 evaluation item"),
        ("cut", "kept: it contains 1 evaluation item, which was cut out"),
        ("mark", "kept: it contains 1 evaluation item, and is marked"),
    ],
)
def test_a_row_is_explained_by_the_items_that_it_contains(folder: Path, action: str, decision: str) -> None:
    assert decontaminate(folder, "--action", action).status == OK
    assert explained(folder, "quiz") == [
        "document  quiz (train.jsonl:0)",
        f"decision  {decision}",
        "item      q1 · question (evals.jsonl:0)",
        "share     100% of its rare n-grams (5); score 100%",
        "6-83      0-77 of the item",
        f"          {QUESTION[:66]}…",
    ]
    clean = "kept: it has less than 0.1 of the rare n-grams of every item"
    assert explained(folder, "train.jsonl:1") == ["document  clean (train.jsonl:1)", f"decision  {clean}"]


def test_a_row_of_which_nothing_is_left_is_explained(folder: Path) -> None:
    assert decontaminate(folder, "--action", "cut").status == OK
    lines = explained(folder, "copy")
    assert lines[1] == "decision  removed: it contains 1 evaluation item, without which no text is left"


def test_an_explanation_has_both_sides_of_all_hits(folder: Path) -> None:
    write_rows(folder / "train.jsonl", {"both": f"{OTHER} {QUESTION.upper()}"})
    options: dict[str, Any] = {"eval_columns": ["question", "answer"], "eval_id_column": "name", "action": "cut"}
    train, evals = (str(folder / name) for name in ("train.jsonl", "evals.jsonl"))
    mw.decontaminate(train, evals, folder / "out", **options)
    found = mw.explain(folder / "out", "both")
    assert isinstance(found, ContaminationExplanation)
    assert (found.status, found.reason, found.threshold) == (
        "removed",
        "it contains 2 evaluation items, without which no text is left",
        0.1,
    )
    assert [(hit.item.id, hit.column, hit.share) for hit in found.hits] == [
        ("q1", "question", 1.0),
        ("q2", "question", 1.0),
    ]
    [span] = found.hits[0].spans
    assert (span.text, span.eval_text) == (QUESTION[:-1].upper(), QUESTION[:-1])
    assert found.cuts == ((0, len(OTHER)), (len(OTHER) + 1, len(OTHER) + len(QUESTION)))
    values = json.loads(run(folder, "explain", "out", "both", "--json").out)
    assert values["hits"][0]["spans"][0]["eval_text"] == QUESTION[:-1]
    assert values["cuts"] == [list(cut) for cut in found.cuts]


def test_items_of_text_files_are_shown(folder: Path) -> None:
    (folder / "items").mkdir()
    (folder / "items" / "one.txt").write_text(QUESTION, encoding="utf-8")
    (folder / "items" / "two.txt").write_text(OTHER, encoding="utf-8")
    done = run(folder, "decontaminate", "train.jsonl", "--evals", "items", "-o", "out", "--quiet")
    assert (done.status, done.err) == (OK, "")
    assert run(folder, "report", "out", "--quiet").err == ""
    check_page(folder)
    assert explained(folder, "rolls")[2].startswith("item      ")


def test_items_in_memory_are_left_out_of_explanations_with_a_note(folder: Path) -> None:
    mw.decontaminate(str(folder / "train.jsonl"), [QUESTION], folder / "out")
    found = mw.explain(folder / "out", "quiz")
    assert isinstance(found, ContaminationExplanation)
    assert [(span.text, span.eval_text) for span in found.hits[0].spans] == [(QUESTION[:-1], None)]
    assert found.notes == ("Some texts are not shown: the evaluation items were in memory.",)


def test_rows_in_quarantine_are_explained(folder: Path) -> None:
    with (folder / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write("broken\n")
    assert decontaminate(folder, "--on-error", "quarantine").status == OK
    assert explained(folder, "train.jsonl:4")[1].startswith("decision  quarantined: ")


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "out", "quizz"], "out: no document has the id 'quizz'; the closest ids are 'quiz'"),
    (["explain", "out", "quiz", "--search"], "out: search must be left out, got True: its run compared no documents"),
])  # fmt: skip
def test_what_cannot_be_explained_is_refused_in_one_line(folder: Path, arguments: list[str], message: str) -> None:
    assert decontaminate(folder).status == OK
    done = run(folder, *arguments)
    assert (done.status in (USAGE, FAILURE), done.err) == (True, f"minwise: {message}\n")


@pytest.mark.parametrize("column", ["share", "spans", "eval_row", "eval_column"])
@pytest.mark.parametrize("command", [["report", "out"], ["explain", "out", "quiz"]])
def test_a_damaged_table_of_hits_is_refused_in_one_line(folder: Path, column: str, command: list[str]) -> None:
    assert decontaminate(folder).status == OK
    path = folder / "out" / "hits.parquet"
    whole = pq.read_table(path)
    for damaged in (
        whole.drop_columns([column]),
        whole.set_column(
            whole.schema.names.index(column), column, pa.nulls(len(whole), whole.schema.field(column).type)
        ),
        whole.set_column(whole.schema.names.index(column), column, pa.array(["x"] * len(whole), pa.binary())),
    ):
        pq.write_table(damaged, path)
        done = run(folder, *command)
        assert (done.status, done.err.count("\n")) == (FAILURE, 1)
        assert column in done.err


def test_the_summary_names_the_output(folder: Path) -> None:
    given = ("train.jsonl", "--evals", "evals.jsonl", "--eval-columns", "question", "-o", "out/")
    done = run(folder, "decontaminate", *given)
    assert done.out.startswith("3 of 4 rows contaminated, removed in ")
    assert done.out.endswith("kept rows in out/kept; to inspect the run, open out/report.html\n")


@pytest.mark.parametrize("action", ["remove", "cut", "mark"])
@pytest.mark.parametrize("source", ["train.jsonl", "-"])
def test_kept_rows_go_to_standard_output(folder: Path, action: str, source: str) -> None:
    assert decontaminate(folder, "--action", action).status == OK
    given = ("--evals", "evals.jsonl", "--eval-columns", "question,answer", "--eval-id-column", "name", "--format")
    options = (*given, "jsonl", "-o", "-", "--action", action)
    done = run(folder, "decontaminate", source, *options, job=Job(stdin="train.jsonl"))
    assert done.status == OK
    assert done.out == (folder / "out" / "kept" / "train.jsonl").read_text(encoding="utf-8")
    assert "3 of 4 rows contaminated" in done.err
    assert not (folder / "-").exists()


def test_spans_are_cut_and_rows_without_any_token_left_are_removed(folder: Path) -> None:
    assert decontaminate(folder, "--action", "cut").status == OK
    expected = {"quiz": "Quiz! ? Five.", "clean": ROWS["clean"], "rolls": "(1) . (2) Nothing."}
    assert {name: row["text"] for name, row in kept(folder).items()} == expected
    assert [row["id"] for row in table(folder, "removed")] == ["copy"]
    cuts = [(row["id"], ROWS[row["id"]][row["start"] : row["end"]]) for row in table(folder, "cuts")]
    assert cuts == [("quiz", QUESTION[:-1]), ("copy", QUESTION[:-1]), ("rolls", OTHER.upper())]


def test_rows_are_marked(folder: Path) -> None:
    assert decontaminate(folder, "--action", "mark").status == OK
    marks = {name: (row["contaminated"], row["eval_id"], row["share"]) for name, row in kept(folder).items()}
    assert marks == {
        "quiz": (True, "q1", 1.0),
        "clean": (False, None, None),
        "copy": (True, "q1", 1.0),
        "rolls": (True, "q2", 1.0),
    }


@pytest.mark.parametrize("action", ["remove", "cut", "mark"])
def test_the_input_is_restored_byte_for_byte(folder: Path, action: str) -> None:
    assert decontaminate(folder, "--action", action).status == OK
    assert run(folder, "restore", "out", "--all", "-o", "back", "--quiet").status == OK
    assert contents(folder / "back" / "kept") == {"train.jsonl": (folder / "train.jsonl").read_bytes()}


def test_undone_cuts_are_counted(folder: Path) -> None:
    assert decontaminate(folder, "--action", "cut").status == OK
    done = run(folder, "restore", "out", "--all", "-o", "back")
    assert done.out == "restored 1 of 1 removed document, undid the cuts of 2; 4 rows in back/kept\n"


def test_words_are_not_joined_by_a_cut() -> None:
    item = "我们今天去看电影吧明天下雨"
    result = mw.decontaminate([f"foo{item}bar", f"foo {item} bar"], [item], action="cut")
    assert result.kept["text"].to_pylist() == ["foo我bar", "foo  bar"]


@pytest.mark.parametrize(("share", "found"), [(0.25, 1), (0.26, 0)])
def test_a_hit_needs_the_share_of_rare_ngrams(share: float, found: int) -> None:
    words = [f"w{number}" for number in range(8)]
    text = " ".join([*words[:5], "other"])  # one of four
    result = mw.decontaminate([text], [" ".join(words)], ngram=5, min_share=share)
    assert result.hits.num_rows == found
    assert mw.decontaminate([text], [" ".join(words)], ngram=5, min_share=share, min_ngrams=1).hits.num_rows == 1


@pytest.mark.parametrize(("rows", "found"), [(3, 3), (4, 0)])
def test_an_ngram_in_more_rows_than_allowed_is_common_and_copies_count_once(rows: int, found: int) -> None:
    texts = [f"{number} {FOOTER}" for number in range(rows)]
    options: dict[str, Any] = {"common_share": 0.5, "common_count": 3}
    result = mw.decontaminate(texts, [FOOTER], **options)
    assert result.hits.num_rows == found
    assert result.uncheckable["reason"].to_pylist() == ([] if found else ["no rare n-gram"])
    copies = mw.decontaminate([*texts[:3], *texts[:1] * 9], [FOOTER], **options)
    assert (copies.hits.num_rows, copies.report["items"]["distinct_rows"]) == (12, 3)


def test_results_have_the_type_of_the_input() -> None:
    rows = [{"text": QUESTION, "n": 1}, {"text": "other", "n": 2}]
    assert mw.decontaminate(iter(rows), [QUESTION]).kept == rows[1:]
    marked = mw.decontaminate(pa.Table.from_pylist(rows), pa.table({"id": [7], "text": [QUESTION]}), action="mark").kept
    assert marked["eval_id"].to_pylist() == [7, None]


def test_an_audit_states_recall_and_precision(folder: Path) -> None:
    items = [f"{QUESTION} {number} {OTHER} number {number}" for number in range(20)]
    texts = [f"Row {number} of the corpus, with words of its own: {number * 7}." for number in range(50)]
    audit = mw.decontaminate(texts, items, audit=True).report["audit"]
    assert [kind["planted"] for kind in audit["recall"]] == [400] * 7
    values = [kind["value"] for kind in audit["recall"]]
    assert values[:2] == [1.0, 1.0]
    assert 0 < values[-1] < values[2] <= 1
    assert all(kind["low"] <= kind["value"] <= kind["high"] for kind in audit["recall"])
    assert audit["precision"]["flagged"] == 0
    assert audit == mw.decontaminate(texts, items, audit=True, threads=2).report["audit"]


def test_rows_and_items_that_cannot_be_read_are_listed(folder: Path) -> None:
    with (folder / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write("broken\n")
    with (folder / "evals.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"name": "q3", "question": null, "answer": "one two three four five"}\n')
    assert decontaminate(folder).status == OK
    [fault] = map(json.loads, (folder / "out" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines())
    assert fault["row"] == 4
    assert [(row["eval_id"], row["eval_column"]) for row in table(folder, "uncheckable")] == [
        ("q1", "answer"),
        ("q3", "question"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--evals", "-"], "evals must be files or data in memory, got - (standard input); save it to a file"),
        (["--ngram", "0"], "--ngram must be a whole number from 5 to 100, got 0"),
        (["--min-share", "0"], "--min-share must be a number above 0 and at most 1, got 0.0"),
        (["--eval-columns", "a,,b"], "--eval-columns must be different names such as question,answer, got 'a,,b'"),
        (
            ["--action", "cut", "--html"],
            "--action cut needs texts, got --html, which reads only the visible text of pages",
        ),
        (
            ["--evals", "train.jsonl"],
            "evals must not be training data, got train.jsonl as both; leave it out of one of",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(folder: Path, arguments: list[str], message: str) -> None:
    done = decontaminate(folder, *arguments)
    assert done.status == USAGE
    assert done.err.startswith(f"minwise: {message}")
    assert done.err.count("\n") == 1
    assert not (folder / "out").exists()


def test_a_column_of_the_name_of_a_mark_is_refused(folder: Path) -> None:
    write_rows(folder / "train.jsonl", ROWS, share=1)
    done = decontaminate(folder, "--action", "mark")
    assert (done.status, done.err.count("\n")) == (USAGE, 1)
    assert "has a column 'share' already" in done.err


def test_a_column_that_no_evaluation_row_has_is_refused(folder: Path) -> None:
    """Not listed row by row as items that cannot be checked: a typing error would leave out half of the items."""
    done = decontaminate(folder, "--eval-columns", "question,answers")
    columns = "its columns are: name (string), question (string), answer (string)"
    hint = "did you mean --eval-columns answer?"
    assert (done.status, done.err) == (
        FAILURE,
        f"minwise: evals: no row has the column 'answers'; {columns}; {hint}\n",
    )
    (folder / "more.jsonl").write_text('{"name": "q3", "answers": "one two three four five"}\n', encoding="utf-8")
    assert decontaminate(folder, "--evals", "more.jsonl", "--eval-columns", "question,answers").status == OK


@pytest.mark.parametrize("options", [("question,answers", "name"), ("question,answer", "names")])
def test_a_column_that_a_table_lacks_is_proposed_under_its_setting(folder: Path, options: tuple[str, str]) -> None:
    (folder / "evals.csv").write_text(f"name,question,answer\nq1,{QUESTION},five\n", encoding="utf-8")
    columns = ("--evals", "evals.csv", "--eval-columns", options[0], "--eval-id-column", options[1])
    done = run(folder, "decontaminate", "train.jsonl", *columns, "-o", "out", "--quiet")
    assert (done.status, done.err.count("\n")) == (FAILURE, 1)
    assert "evals.csv: " in done.err
    assert "did you mean --eval-" in done.err


def test_audit_must_be_a_truth_value() -> None:
    with pytest.raises(InputError, match="audit must be bool, got str"):
        mw.decontaminate([QUESTION], [QUESTION], audit="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["", '{"name": "q", "question": "too short", "answer": "yes"}\n'])
def test_evals_without_an_item_that_can_be_checked_are_refused(folder: Path, content: str) -> None:
    (folder / "evals.jsonl").write_text(content, encoding="utf-8")
    done = decontaminate(folder)
    assert (done.status, done.err.count("\n")) == (FAILURE, 1)
    reason = "fewer than 5 tokens" if content else "evals.jsonl: nothing to read, 0 bytes"
    assert reason in done.err


def test_evals_that_are_too_large_for_the_memory_are_refused() -> None:
    items = [f"{number} " * 40 for number in range(20_000)]
    with pytest.raises(mw.MinwiseError, match="evals must fit into a quarter of the memory, 64 MB"):
        mw.decontaminate(["text"], items, memory="256MB")


def test_a_killed_run_resumes_with_the_same_bytes(folder: Path) -> None:
    sizes = {"minwise.search.first_pass.PART_DOCUMENTS": 2, "minwise.search.contamination.WAITING_SHARE": 10**9}

    def start(name: str, trap: dict[str, object] | None) -> Done:
        job = Job(constants=sizes, trap=trap)
        return decontaminate(folder, "more.jsonl", "--action", "cut", "--work", f"{name}.work", out=name, job=job)

    def written(name: str) -> dict[str, bytes]:
        files = contents(folder / name)
        return {name: content for name, content in files.items() if name not in ("run.json", "report.html")}

    write_rows(folder / "more.jsonl", ROWS)
    assert start("whole", {"log": str(folder / "log"), "act": "kill"}).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    assert all(any(kind in line for line in seen) for kind in ("part-000001", "grams-000001", "cuts-000001"))
    for number in range(2, len(seen) - 2, max(1, len(seen) // 8)):
        trap: dict[str, object] = {"point": number, "after": True, "act": "kill"}
        assert start(f"out{number}", trap).status == -signal.SIGKILL, seen[number]
        assert start(f"out{number}", None).status == OK, seen[number]
        assert written(f"out{number}") == written("whole"), seen[number]
