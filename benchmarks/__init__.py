"""Measurements of minwise: how fast (`peers`, `speed`, `scale` and others) and how good (`quality`) it is."""
