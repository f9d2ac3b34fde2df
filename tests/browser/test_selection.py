"""Selection of documents: the downloaded list has exactly the ids of the selected documents."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.browser import Visit
from support.page_shapes import many_sources, newsroom, renamed

import minwise as mw
from browser.conftest import Opener
from minwise.cli.command import command

# Ids and their lines in the list: unchanged, or a JSON string if a line cannot hold them unchanged.
SPECIAL = {
    "plain": "plain",
    "two words": "two words",
    "4711": "4711",
    "Grüße, 世界 🌍": "Grüße, 世界 🌍",
    "# no comment": "# no comment",
    "--all": "--all",
    "a,b;c'd": "a,b;c'd",
    'in "the" middle': 'in "the" middle',
    "back\\slash": "back\\slash",
    "\\n": "\\n",
    "</textarea><script>pwned=1</script>": "</textarea><script>pwned=1</script>",
    "&amp;&quot;": "&amp;&quot;",
    "line\nbreak": r'"line\nbreak"',
    "return\rhere": r'"return\rhere"',
    '"quoted"': r'"\"quoted\""',
    " begins with a space": '" begins with a space"',
    "ends with a tab\t": r'"ends with a tab\t"',
    "\u00a0no-break space": r'"\u00a0no-break space"',
    "next\u0085line": r'"next\u0085line"',
    "separated\u2028line": r'"separated\u2028line"',
}


def corpus(path: Path, ids: list[str]) -> Path:
    """Write a file of near-duplicates with these ids, preceded by a document that is kept."""
    words = " ".join(f"word{number}" for number in range(60))
    rows = [{"id": name, "text": f"{words} {number}"} for number, name in enumerate(["kept", *ids])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def special(tmp_path: Path, visit: Opener) -> Visit:
    """Open the report of a run that removed all of the special ids."""
    folder = tmp_path / "it's an output"
    mw.dedup(str(corpus(tmp_path / "special.jsonl", list(SPECIAL))), output=folder)
    return visit(folder / "report.html", permissions=["clipboard-read", "clipboard-write"])


def test_the_list_has_a_line_for_each_selected_document(special: Visit) -> None:
    special.select()
    name, data = special.downloaded()
    lines = data.decode().split("\n")
    assert name == "keep-ids.txt"
    assert lines.pop() == ""
    assert sorted(lines) == sorted(SPECIAL.values())


def test_restore_accepts_the_list(special: Visit, tmp_path: Path) -> None:
    """Exactly the selected documents are restored."""
    special.select()
    special.all("input[type=checkbox]").first.uncheck()
    (tmp_path / "keep-ids.txt").write_bytes(special.downloaded()[1])
    back = tmp_path / "back"
    arguments = ["restore", str(tmp_path / "it's an output"), "--ids", str(tmp_path / "keep-ids.txt"), "-o", str(back)]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    rows = [json.loads(line)["id"] for path in back.glob("kept/*") for line in path.read_bytes().splitlines()]
    still = pq.read_table(back / "removed.parquet").column("id").to_pylist()
    assert len(still) == 1
    assert sorted([*rows, *still]) == sorted(["kept", *SPECIAL])


def test_the_bar_counts_the_selected_documents(special: Visit) -> None:
    """It is hidden while there are none."""
    bar, count = special.one("#selection"), special.one("#selection-count")
    assert not bar.is_visible()
    special.select(3)
    assert count.inner_text() == "3 documents to keep"
    special.all("input[type=checkbox]").nth(1).uncheck()
    assert count.inner_text() == "2 documents to keep"
    wanted = special.all("input:checked").evaluate_all("all => all.map(box => JSON.parse(box.dataset.id))")
    assert special.downloaded()[1].decode().splitlines() == [SPECIAL[name] for name in wanted]
    special.all("input[type=checkbox]").nth(0).uncheck()
    assert count.inner_text() == "1 document to keep"
    special.all("input[type=checkbox]").nth(2).uncheck()
    assert not bar.is_visible()


def test_clear_deselects_everything_and_moves_the_focus(special: Visit) -> None:
    special.select(3)
    special.page.get_by_role("button", name="clear").click()
    assert special.all("input:checked").count() == 0
    assert not special.one("#selection").is_visible()
    assert special.page.evaluate("document.activeElement.id") == "clusters-name"


def test_the_command_is_copied(special: Visit, tmp_path: Path) -> None:
    """Quoted for a shell, with the directory of the page."""
    special.select(1)
    special.page.get_by_role("button", name="copy command").click()
    special.page.get_by_role("button", name="copied").wait_for()
    folder = f"'{tmp_path}/it'\\''s an output'"
    expected = f"minwise restore {folder} --ids keep-ids.txt -o RESTORED"
    assert special.page.evaluate("navigator.clipboard.readText()") == expected
    assert special.one("#command").inner_text() == expected


def test_checkboxes_are_labelled_with_the_id(special: Visit) -> None:
    special.open_all()
    assert special.page.get_by_role("checkbox", name="keep this document: two words", exact=True).count() == 1
    assert special.page.get_by_role("checkbox", name="keep this document").count() == len(SPECIAL)


def test_large_numeric_ids_keep_all_digits(visit: Opener) -> None:
    """A script has exact integers only up to 2**53."""
    opened = visit(renamed(newsroom(), lambda row: 2**63 - 1 - row).page())
    opened.select()
    ids = [int(line) for line in opened.downloaded()[1].splitlines()]
    rows = [member["row"] for cluster in newsroom().report["largest_clusters"] for member in cluster["members"]]
    assert ids == [2**63 - 1 - row for row in rows]


def test_an_id_of_several_documents_is_written_once(visit: Opener) -> None:
    """Restoring it restores all of them."""
    opened = visit(renamed(newsroom(), lambda _: "twin").page())
    opened.select(2)
    assert opened.downloaded()[1] == b"twin\n"


def test_the_bar_does_not_cover_the_end_of_the_page(visit: Opener) -> None:
    opened = visit(many_sources(3).page(), viewport={"width": 360, "height": 640})
    opened.select(1)
    opened.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last, bar = opened.one("#timing").bounding_box(), opened.one("#selection").bounding_box()
    assert last is not None
    assert bar is not None
    assert last["y"] + last["height"] <= bar["y"]
    assert bar["width"] == 360
