"""One module per engine, each run in a process of its own."""
