"""Ticking: the list of ids that a reader downloads names exactly the documents that were ticked."""

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

# Ids and the lines that stand for them: as they are, or as a JSON string where a line could not hold them as they are.
NASTY = {
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
    """A file of near-duplicates with these ids; the first one is kept for all of them."""
    words = " ".join(f"word{number}" for number in range(60))
    rows = [{"id": one, "text": f"{words} {number}"} for number, one in enumerate(["kept", *ids])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def nasty(tmp_path: Path, visit: Opener) -> Visit:
    """The report of a run that removed all of the nasty ids."""
    folder = tmp_path / "it's an output"
    mw.dedup(str(corpus(tmp_path / "nasty.jsonl", list(NASTY))), output=folder)
    return visit(folder / "report.html", permissions=["clipboard-read", "clipboard-write"])


def test_the_list_has_a_line_for_each_ticked_document(nasty: Visit) -> None:
    """In the order of the page, in UTF-8, each id so that it is read back."""
    nasty.tick()
    name, data = nasty.downloaded()
    lines = data.decode().split("\n")
    assert name == "keep-ids.txt"
    assert lines.pop() == ""
    assert sorted(lines) == sorted(NASTY.values())


def test_restore_takes_the_list(nasty: Visit, tmp_path: Path) -> None:
    """All of the nasty ids come back, and only they."""
    nasty.tick()
    nasty.all("input[type=checkbox]").first.uncheck()
    (tmp_path / "keep-ids.txt").write_bytes(nasty.downloaded()[1])
    back = tmp_path / "back"
    arguments = ["restore", str(tmp_path / "it's an output"), "--ids", str(tmp_path / "keep-ids.txt"), "-o", str(back)]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    rows = [json.loads(line)["id"] for path in back.glob("kept/*") for line in path.read_bytes().splitlines()]
    still = pq.read_table(back / "removed.parquet").column("id").to_pylist()
    assert len(still) == 1
    assert sorted([*rows, *still]) == sorted(["kept", *NASTY])


def test_only_what_is_ticked(nasty: Visit) -> None:
    """A second tick takes it back; the bar counts, and goes when there is nothing to count."""
    bar, count = nasty.one("#ticked"), nasty.one("#ticked-count")
    assert not bar.is_visible()
    nasty.tick(3)
    assert count.inner_text() == "3 documents to keep"
    nasty.all("input[type=checkbox]").nth(1).uncheck()
    assert count.inner_text() == "2 documents to keep"
    wanted = nasty.all("input:checked").evaluate_all("all => all.map(one => JSON.parse(one.dataset.id))")
    assert nasty.downloaded()[1].decode().splitlines() == [NASTY[one] for one in wanted]
    nasty.all("input[type=checkbox]").nth(0).uncheck()
    assert count.inner_text() == "1 document to keep"
    nasty.all("input[type=checkbox]").nth(2).uncheck()
    assert not bar.is_visible()


def test_clear(nasty: Visit) -> None:
    """Unticks everything, and the keyboard goes on from a sensible place."""
    nasty.tick(3)
    nasty.page.get_by_role("button", name="clear").click()
    assert nasty.all("input:checked").count() == 0
    assert not nasty.one("#ticked").is_visible()
    assert nasty.page.evaluate("document.activeElement.id") == "clusters-name"


def test_the_command_is_copied(nasty: Visit, tmp_path: Path) -> None:
    """As a shell takes it, with the directory that the page lies in."""
    nasty.tick(1)
    nasty.page.get_by_role("button", name="copy command").click()
    nasty.page.get_by_role("button", name="copied").wait_for()
    folder = f"'{tmp_path}/it'\\''s an output'"
    expected = f"minwise restore {folder} --ids keep-ids.txt -o RESTORED"
    assert nasty.page.evaluate("navigator.clipboard.readText()") == expected
    assert nasty.one("#command").inner_text() == expected


def test_boxes_have_names(nasty: Visit) -> None:
    """Each says which document it keeps."""
    nasty.open_all()
    assert nasty.page.get_by_role("checkbox", name="keep this one: two words", exact=True).count() == 1
    assert nasty.page.get_by_role("checkbox", name="keep this one").count() == len(NASTY)


def test_numbers_beyond_what_a_script_can_count(visit: Opener) -> None:
    """2**63 − 1 keeps all of its digits."""
    opened = visit(renamed(newsroom(), lambda row: 2**63 - 1 - row).page())
    opened.tick()
    ids = [int(line) for line in opened.downloaded()[1].splitlines()]
    rows = [one["row"] for cluster in newsroom().report["largest_clusters"] for one in cluster["members"]]
    assert ids == [2**63 - 1 - row for row in rows]


def test_an_id_of_several_documents_is_written_once(visit: Opener) -> None:
    """Restoring it brings back all of them."""
    opened = visit(renamed(newsroom(), lambda _: "twin").page())
    opened.tick(2)
    assert opened.downloaded()[1] == b"twin\n"


def test_the_bar_hides_nothing_at_the_end(visit: Opener) -> None:
    """At the bottom of the page the last line still stands above the bar."""
    opened = visit(many_sources(3).page(), viewport={"width": 360, "height": 640})
    opened.tick(1)
    opened.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last, bar = opened.one("#effort").bounding_box(), opened.one("#ticked").bounding_box()
    assert last is not None
    assert bar is not None
    assert last["y"] + last["height"] <= bar["y"]
    assert bar["width"] == 360
