"""Texts shown by ``minwise compare``: in a terminal of a given width, in a pipe, and on a page."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len
from support.commands import MINWISE
from support.pseudo_terminal import in_pipe, in_terminal, plain

STYLE = re.compile(r"\x1b\[([0-9;]*)m")
LEFT = """The ferry leaves the old harbour at six in the morning, and the gulls follow it out to sea.
Nobody waves, for nobody is awake but the baker and his cat.
港の朝は早い。漁師たちは五時に船を出し、昼前には市場に魚を並べる。
"""
RIGHT = """Nobody waves, for nobody is awake but the baker and his cat.
The ferry leaves the old harbour at eight in the morning, and the gulls follow it out to sea.
港の朝は早い。漁師たちは六時に船を出し、昼前には市場に魚を並べる。
"""
OPTIONS = ("compare", "left.txt", "right.txt", "--shingle", "word:3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory with the files, in which the command runs."""
    (tmp_path / "left.txt").write_text(LEFT, encoding="utf-8")
    (tmp_path / "right.txt").write_text(RIGHT, encoding="utf-8")
    return tmp_path


def styled(shown: str, code: str) -> str:
    """Return all text of a style, without blanks."""
    return "".join("".join(re.findall(rf"\x1b\[{code}m(.*?)\x1b\[0m", shown)).split())


def test_a_wide_terminal_has_two_straight_columns(folder: Path) -> None:
    """Also with wide characters; no line exceeds the width."""
    shown = plain(in_terminal(folder, *OPTIONS))
    rows = [line for line in shown if "│" in line]
    assert len(rows) > 6
    assert {cell_len(line.partition("│")[0]) for line in rows} == {49}
    assert max(cell_len(line) for line in shown) <= 100
    assert rows[0].split() == ["left.txt", "│", "right.txt"]


def test_columns_contain_both_texts(folder: Path) -> None:
    rows = [line for line in plain(in_terminal(folder, *OPTIONS)) if "│" in line][1:]
    for side, text in ((0, LEFT), (2, RIGHT)):
        assert "".join("".join(line.partition("│")[side].split()) for line in rows) == "".join(text.split())


def test_shared_lines_are_aligned_and_moved_lines_are_not(folder: Path) -> None:
    rows = [line for line in plain(in_terminal(folder, *OPTIONS, columns=260)) if "│" in line]
    together = [line for line in rows if line.count("the old harbour") == 2 or line.count("漁師たち") == 2]
    alone = [line for line in rows if line.count("Nobody waves") == 1]
    assert (len(together), len(alone)) == (2, 2)


def test_shared_moved_and_other_words_have_different_styles(folder: Path) -> None:
    """Green, underlined magenta and bold."""
    shown = in_terminal(folder, *OPTIONS).partition("left.txt\x1b[0m ")[2]
    assert "theoldharbourat" in styled(shown, "32")
    assert "Nobodywaves,fornobody" in styled(shown, "4;35")
    assert styled(shown, "1").replace(".", "").startswith("right")
    assert {"six", "eight", "五", "六"} <= set(re.findall(r"six|eight|五|六", styled(shown, "1")))
    assert "six" not in styled(shown, "32")


def test_no_color_keeps_bold_and_underlined(folder: Path) -> None:
    shown = in_terminal(folder, *OPTIONS, NO_COLOR="1")
    codes = {number for code in STYLE.findall(shown) for number in code.split(";") if number}
    assert codes <= {"0", "1", "2", "3", "4"}
    assert "Nobodywaves" in styled(shown, "4")


def test_a_terminal_without_styles_shows_marks(folder: Path) -> None:
    shown = in_terminal(folder, *OPTIONS, TERM="dumb")
    assert "\x1b" not in shown
    assert "⟦The ferry leaves" in shown
    assert "⟪Nobody waves" in shown


def test_a_narrow_terminal_interleaves_the_texts(folder: Path) -> None:
    lines = plain(in_terminal(folder, *OPTIONS, columns=50))
    assert not any("│" in line for line in lines)
    assert max(cell_len(line) for line in lines) <= 50
    texts = lines[lines.index("< left.txt") + 2 :]
    left = "".join("".join(line[2:].split()) for line in texts if line[:1] in "< ")
    assert left == "".join(LEFT.split())
    assert any(line.startswith("> ") and "eight" in line for line in texts)


def test_a_pipe_has_marks_and_no_wrapping(folder: Path) -> None:
    shown = in_pipe(folder, *OPTIONS, COLUMNS="30")
    assert "\x1b" not in shown
    lines = shown.splitlines()
    texts = lines[lines.index("> right.txt") + 1 :]
    assert texts == [
        "> ⟪Nobody waves, for nobody is awake but the baker and his cat⟫.",
        "< ⟦The ferry leaves the old harbour at⟧ six ⟦in the morning, and the gulls follow it out to sea⟧.",
        "> ⟦The ferry leaves the old harbour at⟧ eight ⟦in the morning, and the gulls follow it out to sea⟧.",
        "< ⟪Nobody waves, for nobody is awake but the baker and his cat⟫.",
        "< ⟦港の朝は早い。漁師たちは⟧五⟦時に船を出し、昼前には市場に魚を並べる⟧。",
        "> ⟦港の朝は早い。漁師たちは⟧六⟦時に船を出し、昼前には市場に魚を並べる⟧。",
    ]


def test_equal_lines_are_shown_once_in_a_pipe(folder: Path) -> None:
    (folder / "right.txt").write_text(LEFT.replace("baker", "butcher"), encoding="utf-8")
    lines = in_pipe(folder, *OPTIONS).splitlines()
    assert (
        lines.count("  ⟦The ferry leaves the old harbour at six in the morning, and the gulls follow it out to sea.⟧")
        == 1
    )


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_control_characters_of_texts_are_made_visible(folder: Path, terminal: bool) -> None:
    """Escape sequences, bells, backspaces, C1 codes and directional marks."""
    nasty = (
        "clear \x1b[2J title \x1b]0;owned\x07 back\b\b\b c1 \x9b31m del \x7f nul \x00 turn \u202e cr \r over\x0b\x0c"
    )
    (folder / "left.txt").write_text(f"{nasty}\n{LEFT}", encoding="utf-8", newline="")
    (folder / "right.txt").write_text(f"{LEFT}\n{nasty} more", encoding="utf-8", newline="")
    shown = (in_terminal if terminal else in_pipe)(folder, *OPTIONS)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", STYLE.sub("", shown))
    assert "␛[2J" in shown
    assert "␛]0;owned␇" in "".join(shown.split())
    assert "⟨U+009B⟩31m" in shown
    assert "⟨U+202E⟩" in shown


def test_control_characters_of_file_names_are_made_visible(folder: Path) -> None:
    (folder / "a\x1b[2Jb.txt").write_text(LEFT, encoding="utf-8")
    shown = in_terminal(folder, "compare", "a\x1b[2Jb.txt", "right.txt")
    assert "\x1b[2J" not in shown
    assert r"only in a\x1b[2Jb.txt" in STYLE.sub("", shown)


def test_tabs_become_blanks_and_columns_stay_straight(folder: Path) -> None:
    (folder / "left.txt").write_text("one\ttwo\tthree\n\tfour\tfive\t\tsix\n" * 3, encoding="utf-8")
    rows = [line for line in plain(in_terminal(folder, *OPTIONS)) if "│" in line]
    assert "\t" not in "".join(rows)
    assert "one two three" in rows[1]
    assert {cell_len(line.partition("│")[0]) for line in rows} == {49}


def test_words_longer_than_a_column_are_split_without_loss(folder: Path) -> None:
    word = "pneumono" * 40
    (folder / "left.txt").write_text(f"so {word} there", encoding="utf-8")
    rows = [line.partition("│")[0] for line in plain(in_terminal(folder, *OPTIONS)) if "│" in line][1:]
    assert "".join("".join(rows).split()) == f"so{word}there"
    assert max(map(len, rows)) <= 49


@pytest.fixture
def long_texts(folder: Path) -> Path:
    """Return a directory with two texts of 2,000 lines that differ in one word in the middle."""
    lines = [f"line {number} has words of its own, {number} of them" for number in range(2000)]
    (folder / "left.txt").write_text("\n".join(lines), encoding="utf-8")
    lines[1000] = lines[1000].replace("words", "letters")
    (folder / "right.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_long_texts_are_shown_around_their_differences_unless_full(long_texts: Path) -> None:
    short = in_pipe(long_texts, *OPTIONS)
    assert "letters" in short
    assert "line 999 has" in short
    assert "line 500 has" not in short
    assert re.search(r"… \d\d,\d{3} characters …", short)
    assert len(short) < 3000
    full = in_pipe(long_texts, *OPTIONS, "--full")
    assert all(f"line {number} has" in full for number in range(2000))
    assert "characters …" not in full


def test_bytes_that_are_not_utf8_are_replaced(folder: Path) -> None:
    (folder / "left.txt").write_bytes(b"\xff\xfe\x00 same bytes here \x80")
    (folder / "right.txt").write_bytes(b"other \xff same bytes here \x81\x82")
    shown = in_pipe(folder, "compare", "left.txt", "right.txt", "--shingle", "byte:4")
    assert "⟦ same bytes here ⟧" in shown
    assert "\ufffd\ufffd␀" in shown


def test_candidates_list_the_first_bands_and_their_number(folder: Path) -> None:
    same = in_pipe(folder, "compare", "left.txt", "left.txt")
    assert "yes, 26 of 26 bands fire (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …); at this similarity 100% of" in same
    assert re.search(r"near-duplicates +yes, at the threshold 0\.8\n", same)
    one = in_pipe(folder, "compare", "left.txt", "left.txt", "--bands", "1", "--rows", "3")
    assert "yes, 1 of 1 band fires (0)" in one
    none = in_pipe(folder, *OPTIONS, "--bands", "1", "--rows", "200")
    assert "no, none of 1 band fires; at this similarity less than 0.1% of pairs are found" in none


def test_with_html_the_texts_are_on_the_page_only(folder: Path) -> None:
    shown = in_pipe(folder, *OPTIONS, "-o", "page.html")
    assert re.search(r"^page +page\.html$", shown, re.MULTILINE)
    assert "harbour" not in shown
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert '<span class="shared">The ferry leaves the old harbour at</span> <mark class="only">six</mark> <span' in page
    assert '<mark class="moved">Nobody waves' in page


def test_html_and_json_together(folder: Path) -> None:
    found = json.loads(in_pipe(folder, *OPTIONS, "-o", "page.html", "--json"))
    assert found["output"] == "page.html"
    assert (folder / "page.html").exists()
    for passage in found["passages"]:
        left, right = LEFT[slice(*passage["left"])], RIGHT[slice(*passage["right"])]
        assert left == right
    assert [LEFT[slice(*passage["left"])][:6] for passage in found["passages"] if passage["moved"]] == ["Nobody"]


def test_a_page_that_cannot_be_written_is_reported_in_one_line(folder: Path) -> None:
    (folder / "folder").mkdir()
    before = sorted(folder.iterdir())
    for path, message in (("nowhere/page.html", "nowhere: No such file"), ("folder", "folder: Is a directory")):
        done = subprocess.run(
            [MINWISE, *OPTIONS, "-o", path], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (74, "", 1), done.stderr
        assert message in done.stderr
    assert sorted(folder.iterdir()) == before


def test_time_is_not_quadratic(folder: Path) -> None:
    """Four times the text takes at most six times as long, including the output.

    Four million characters take about a second; starting the command takes a part of both times.
    """
    spent = []
    for size in (1, 4):
        words = [f"w{number * 7919 % 100_003}" for number in range(150_000 * size)]
        (folder / "left.txt").write_text(" ".join(words), encoding="utf-8")
        words[:: 1000 + size] = ["changed"] * len(words[:: 1000 + size])
        (folder / "right.txt").write_text(" ".join(words[5000:] + words[:5000]), encoding="utf-8")
        spent.append(min(_seconds(folder) for _ in range(2)))
    assert spent[1] < 6 * spent[0]


def _seconds(folder: Path) -> float:
    """Return the processor time of a run that prints the whole texts."""
    start = os.times()
    in_pipe(folder, "compare", "left.txt", "right.txt", "--full")
    end = os.times()
    return end.children_user - start.children_user + end.children_system - start.children_system
