"""Report: results in, what people look at out."""
