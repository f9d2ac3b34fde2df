"""The minwise command line, a module per command or group of commands."""

from minwise.cli.command import main

__all__ = ["main"]
