"""`rethreshold` of a finished run writes the same bytes as `DedupResult.rethreshold` of the run itself."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import digest
from support.random_corpora import LAYOUT, rows, texts
from support.small_corpus import json_lines

import minwise as mw
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.inputs import Files

OPTIONS: dict[str, Any] = {**LAYOUT, "threshold": 0.5}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"group": "components", "keep": "longest"},
    {"keep": "max:score", "verify": "signature"},
    {"shingle": mw.Shingler("char:4", lowercase=False, seed=7)},
    {"shingle": "word:5", "fields": "text:word:2", "keep": "last"},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with JSON lines and text files, some of them as references, and rows with faults."""
    made = rows(texts(1))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(json_lines(made[:40]) + b'{"id": "bad", "text": 7}\n')
    (tmp_path / "in" / "b.jsonl").write_bytes(json_lines(made[40:]))
    for name in ("texts/deep", "references"):
        (tmp_path / name).mkdir(parents=True)
    for number, row in enumerate(made[::3]):
        (tmp_path / ("references" if number % 4 == 0 else "texts/deep") / f"{number}.txt").write_text(row["text"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_same_as_library(source: Files, options: dict[str, Any], elsewhere: Path) -> None:
    """Run, raise the threshold in memory and from the output directory, and compare all files."""
    result = mw.dedup(source, "out", on_error="quarantine", **options)
    result.rethreshold(0.75).write("library")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)  # names in run.json are relative to the directory of the run
        mw.rethreshold(elsewhere.parent / "out", elsewhere.parent / "again", 0.75)
    assert digest(Path("again")) == digest(Path("library"))
    assert digest(Path("again")) != digest(Path("out"))
    assert json.loads(Path("again/run.json").read_text())["directory"] == str(elsewhere.parent)


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_tables(folder: Path, number: int) -> None:
    assert_same_as_library(Files(["in"]), {**OPTIONS, **SETTINGS[number]}, folder / "in")


def in_format(name: str) -> bytes:
    """Return the corpus in the format of a file name."""
    made = rows(texts(2))
    if name.endswith(".json"):
        return json.dumps(made).encode()
    if name.endswith(".csv"):
        lines = (f"{row['id']};{row['text'].encode('latin-1', 'ignore').decode('latin-1')} é" for row in made)
        return "\n".join(["id;text", *lines, ""]).encode("latin-1")
    return "".join(f"{row['text']} {number % 7}\n" for number, row in enumerate(made)).encode()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("array.json", {}),
        ("array.json", {"exact": True, "bands": None, "rows": None}),
        ("semicolons.csv", {"delimiter": ";", "encoding": "latin-1", "scheme": "minhash", "bag": True}),
        ("lines.txt", {"format": "lines", "mask_digits": True}),
    ],
)
def test_formats_and_settings_of_reading(folder: Path, name: str, options: dict[str, Any]) -> None:
    Path(name).write_bytes(in_format(name))
    assert_same_as_library(Files([name]), {**OPTIONS, **options}, folder / "in")


def test_text_files_with_references(folder: Path) -> None:
    assert_same_as_library(Files(["texts"]), {**OPTIONS, "against": Files(["references"])}, folder / "in")


def test_tables_with_references(folder: Path) -> None:
    options = {**OPTIONS, "against": Files(["in/a.jsonl"])}
    assert_same_as_library(Files(["in/b.jsonl"]), options, folder / "in")


@pytest.mark.usefixtures("folder")
def test_a_raised_result_can_be_raised_from_the_original_plan() -> None:
    result = mw.dedup(Files(["in"]), on_error="skip", **OPTIONS)
    result.rethreshold(0.9).write("high")
    result.rethreshold(0.6).write("library")
    mw.rethreshold("high", "again", 0.6)
    assert digest(Path("again")) == digest(Path("library"))
    mw.restore("again", "restored")
    assert (Path("restored/kept/a.jsonl")).read_bytes() == Path("in/a.jsonl").read_bytes()


@pytest.mark.usefixtures("folder")
def test_a_work_directory_spares_the_search_and_still_belongs_to_its_run() -> None:
    options: dict[str, Any] = {**OPTIONS, "on_error": "skip", "work": "work"}
    mw.dedup(Files(["in"]), "out", **options).rethreshold(0.8).write("library")
    stages: list[str] = []
    mw.rethreshold("out", "again", 0.8, work="work", progress=lambda stage, *_: stages.append(stage))
    assert digest(Path("again")) == digest(Path("library"))
    assert "verify" not in stages
    assert mw.dedup(Files(["in"]), "out", **options).published
    with pytest.raises(ConfigError, match="output must be new or empty, got again"):
        mw.dedup(Files(["in"]), "again", **options)


@pytest.mark.usefixtures("folder")
class TestRefusals:
    def out(self, **options: Any) -> None:  # noqa: ANN401
        mw.dedup(Files(["in"]), "out", on_error="skip", **{**OPTIONS, **options})

    def test_a_lower_threshold(self) -> None:
        self.out()
        message = r"threshold must be from 0\.5, that of out, to 1, got 0\.4; run minwise dedup for a lower one"
        with pytest.raises(ConfigError, match=message):
            mw.rethreshold("out", "new", 0.4)

    def test_unknown_similarities(self) -> None:
        self.out(verify="none")
        with pytest.raises(ConfigError, match="verify must be exact or signature"):
            mw.rethreshold("out", "new", 0.9)

    def test_a_changed_input(self) -> None:
        self.out()
        with Path("in/b.jsonl").open("a") as file:
            file.write("\n")
        message = r"in/b\.jsonl has changed since the run: .* then; out can only be computed again from its unchanged"
        with pytest.raises(MismatchError, match=message):
            mw.rethreshold("out", "new", 0.9)
        assert not Path("new").exists()

    def test_a_changed_reference(self) -> None:
        self.out(against=Files(["references"]))
        Path("references/0.txt").write_text("other")
        with pytest.raises(MismatchError, match=r"references/0\.txt has changed since the run"):
            mw.rethreshold("out", "new", 0.9)

    def test_a_reference_in_memory(self) -> None:
        self.out(against=["some text that is only in memory"])
        with pytest.raises(ConfigError, match="out: its reference corpus was in memory; there is no file to read"):
            mw.rethreshold("out", "new", 0.9)

    def test_documents_in_memory(self) -> None:
        mw.dedup(["one text", "another text"], "out")
        with pytest.raises(ConfigError, match="out: its input was a table in memory; there is no file to read again"):
            mw.rethreshold("out", "new", 0.9)

    def test_a_run_of_an_older_version(self) -> None:
        self.out()
        record = json.loads(Path("out/run.json").read_text())
        del record["options"]
        Path("out/run.json").write_text(json.dumps(record))
        with pytest.raises(FormatError, match=r"out/run\.json: must have options, got one of an older minwise"):
            mw.rethreshold("out", "new", 0.9)

    def test_files_of_two_runs(self) -> None:
        self.out()
        record = json.loads(Path("out/run.json").read_text())
        record["options"]["keep"] = "last"
        Path("out/run.json").write_text(json.dumps(record))
        with pytest.raises(FormatError, match=r"must be of one run, got keep 'last' and 'first'; run minwise dedup"):
            mw.rethreshold("out", "new", 0.9)

    def test_an_output_that_exists_or_holds_the_run(self) -> None:
        self.out()
        Path("new").mkdir()
        Path("new/file").touch()
        with pytest.raises(ConfigError, match="output must be new or empty, got new"):
            mw.rethreshold("out", "new", 0.9)
        mw.rethreshold("out", "new", 0.9, overwrite=True)
        with pytest.raises(ConfigError, match="output must not be, hold or lie in out, got out"):
            mw.rethreshold("out", "out", 0.9, overwrite=True)
        with pytest.raises(ConfigError, match="output must not be or hold an input, got in with"):
            mw.rethreshold("out", "in", 0.9, overwrite=True)
