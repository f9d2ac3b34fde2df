"""Input formats: one module per format, and the sources that they open."""

from minwise.inputs.open_sources import Files

__all__ = ["Files"]
