"""Decontamination: speed of the kernel, and recall and precision of thresholds."""
