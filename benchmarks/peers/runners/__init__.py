"""One module per peer, each run in the environment of the peer and in its own process."""
