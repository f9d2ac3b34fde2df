"""The documentation; ``docs.tools`` builds what is not written by hand."""
