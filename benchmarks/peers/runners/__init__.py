"""One module per peer, each run in the peer's own environment and in a process of its own."""
