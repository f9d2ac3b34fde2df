"""Measurements of minwise: how fast (`speed`) and how good (`quality`) it is."""
