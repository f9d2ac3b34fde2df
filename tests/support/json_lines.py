"""Lines of JSON."""

import json
from typing import Any

__all__ = ["objects"]


def objects(lines: str) -> list[dict[str, Any]]:
    """JSON lines as objects."""
    return [json.loads(line) for line in lines.splitlines()]
