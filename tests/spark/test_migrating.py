"""The program for Spark on the page about migrating does what the page says."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"^```py\n(# minwise, .*?)^```", re.MULTILINE | re.DOTALL)


def test_migrating_from_mllib_shows_what_happens(spark: "SparkSession") -> None:
    """From DataFrame to DataFrame; the file is where the repository has it."""
    (block,) = OURS.findall((ROOT / "docs" / "migrating.md").read_text(encoding="utf-8"))
    corpus = ROOT / "examples" / "newsroom" / "docs.jsonl"
    names: dict[str, Any] = {"spark": spark}
    exec(block.replace("docs.jsonl", str(corpus)), names)
    assert f"\nfound.count()  # {names['found'].count()}\n" in block
