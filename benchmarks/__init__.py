"""Measurements of minwise: how fast (`speed`, `endtoend`, `scale`) and how good (`quality`) it is."""
