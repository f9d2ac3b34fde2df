"""One module per tool, each run in the tool's own environment and in a process of its own."""
