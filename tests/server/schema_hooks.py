"""Hooks of schemathesis for what a schema cannot express; loaded by module name."""

import schemathesis

__all__ = ["with_whole_numbers"]


def with_whole_numbers(value: object) -> object:
    """Replace numbers such as ``56.0`` by ``56``: JSON schema accepts both as integers, the service only the second."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: with_whole_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(one) for one in value]
    return value


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: object) -> object:
    """Convert the body of every generated request."""
    return with_whole_numbers(body)
