"""The notebook of the quickstart, run in a real kernel."""

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"
read_notebook: Any = nbformat.read  # it has no types


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return the cells of the notebook after all were run, in a folder without other files."""
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # a debugger that is never used warns otherwise
    notebook = read_notebook(NOTEBOOK, as_version=4)
    folder = str(tmp_path_factory.mktemp("notebook"))
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any, kind: str = "text/html") -> list[str]:  # noqa: ANN401 - a cell
    """Return everything that a cell shows in one form."""
    return [output["data"][kind] for output in cell.outputs if kind in output.get("data", {})]


def cell_with(cells: list[Any], source: str) -> Any:  # noqa: ANN401 - a cell
    (found,) = [cell for cell in cells if source in cell.source]
    return found


def test_the_notebook_is_stored_without_outputs() -> None:
    stored = read_notebook(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert all(not cell.outputs and cell.execution_count is None for cell in stored.cells if cell.cell_type == "code")


def test_no_cell_fails_or_warns(cells: list[Any]) -> None:
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert kinds <= {"execute_result", "display_data"}


def test_a_plan_shows_its_curve(cells: list[Any]) -> None:
    (html,) = shown(cell_with(cells, "mw.plan("))
    assert '<svg class="s-curve"' in html
    assert "threshold 0.6" in html


def test_pairs_show_texts(cells: list[Any]) -> None:
    (html,) = shown(cell_with(cells, "mw.pairs("))
    assert "4 pairs" in html
    assert html.count("The harbour office is closed on Friday afternoon") >= 3
    (text,) = shown(cell_with(cells, "mw.pairs("), "text/plain")
    assert text.startswith("4 pairs\nleft  right  similarity")


def test_a_comparison_marks_differences(cells: list[Any]) -> None:
    (html,) = shown(cell_with(cells, "mw.compare("))
    assert '<mark class="only">' in html


def test_a_deduplication_shows_its_progress_and_examples(cells: list[Any]) -> None:
    *bars, html = shown(cell_with(cells, "progress=True"))
    assert [re.search(r"> ([a-z ]+): ", bar)[1] for bar in bars] == [  # type: ignore[index]
        "read and sketch", "band", "shingle candidates", "verify",
    ]  # fmt: skip
    assert all("elapsed 0:" in bar and 'max="' in bar for bar in bars)
    assert "4 of 7 documents kept" in html
    assert html.count('<div class="sides') == 3


def test_kept_rows_are_a_table_with_their_index(cells: list[Any]) -> None:
    (html,) = shown(cell_with(cells, "result.kept"))
    assert [name for name in ("storm", "mussels", "boat", "choir") if f"<th>{name}</th>" in html] == [
        "storm", "mussels", "boat", "choir",
    ]  # fmt: skip
    assert "storm-copy" not in html


def test_a_removed_text_is_restored(cells: list[Any]) -> None:
    (counts,) = shown(cell_with(cells, "mw.restore("), "text/plain")
    assert "'restored': 1" in counts
    (html,) = shown(cell_with(cells, "restored = pd.read_csv"))
    assert "storm-saturday" in html
    assert "mussels-bucket" not in html
