"""Input formats: one module per format, and the sources that they open."""
