"""One module per tool, each run in the environment of the tool and in its own process."""
