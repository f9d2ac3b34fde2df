"""The Spark program on the migration page gives the result that the page shows."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"^```py\n(# minwise, .*?)^```", re.MULTILINE | re.DOTALL)


def test_the_program_on_the_migration_page_works(spark: "SparkSession") -> None:
    """With the path of the example file in the repository."""
    (block,) = OURS.findall((ROOT / "docs" / "migrating.md").read_text(encoding="utf-8"))
    corpus = ROOT / "examples" / "newsroom" / "docs.jsonl"
    names: dict[str, Any] = {"spark": spark}
    exec(block.replace("docs.jsonl", str(corpus)), names)
    assert f"\nfound.count()  # {names['found'].count()}\n" in block
