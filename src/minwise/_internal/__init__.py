"""Helpers shared by all packages of minwise; not part of the public API."""
