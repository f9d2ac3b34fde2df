"""One module per engine, each run in its own process."""
