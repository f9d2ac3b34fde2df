"""Requests per second and latency of the server under load by wrk on the same machine."""
