"""How long the exact join takes, against the bands on the same documents and against another join on the same sets."""
