"""Fault injection for the index: child processes, a simulated disk, kills and power cuts."""
