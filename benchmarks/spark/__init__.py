"""Spark engine compared with the local engine, with one and two workers, and with MLlib on the same documents."""
