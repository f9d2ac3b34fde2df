"""How fast the persistent index adds, answers and removes, as it grows and against an index in memory."""
