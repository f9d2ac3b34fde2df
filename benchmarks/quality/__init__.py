"""Quality: how good the answer is, ours and the peers', against labels or an exact join."""
