"""Documentation; ``docs.tools`` generates the parts that are not written by hand."""
