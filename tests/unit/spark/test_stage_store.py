"""Files of a stage: those that its tasks have returned must be in the directory; others are of failed attempts."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from support.expect import error_message

from minwise.errors import InputError
from minwise.spark.stage_store import StageFolder


@pytest.fixture
def folder(tmp_path: Path) -> StageFolder:
    """Return a directory with two files of a stage."""
    (tmp_path / "buckets").mkdir()
    for name, content in (("first", b"abc"), ("second", b"defg")):
        (tmp_path / "buckets" / name).write_bytes(content)
    return StageFolder(str(tmp_path))


@pytest.mark.parametrize("sizes", [{"first": 3, "third": 9}, {"third": 9}, {"first": 3, "second": 9}])
def test_a_file_that_only_an_executor_has_is_reported_with_the_remedy(
    sizes: dict[str, int], folder: StageFolder
) -> None:
    """It is not in the directory of the driver, or is shorter there; nothing is deleted."""
    lacking = max(sizes)
    assert error_message(InputError, lambda: folder.keep_files("buckets", sizes)) == (
        f"{folder.path}/buckets/{lacking} was written by an executor and is not here: "
        "work and output must be on storage that all machines share, or URLs"
    )
    assert sorted(folder.sizes("buckets")) == ["first", "second"]


def test_files_of_failed_attempts_are_deleted(folder: StageFolder) -> None:
    folder.keep_files("buckets", {"second": 4})
    assert folder.sizes("buckets") == {"second": 4}
