"""What schemathesis is told of what a schema can not say; it loads this module by its name."""

import schemathesis

__all__ = ["with_whole_numbers"]


def with_whole_numbers(value: object) -> object:
    """A value whose ``56.0`` are ``56``: to a schema both are integers, to the service only the second."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: with_whole_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(one) for one in value]
    return value


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: object) -> object:
    """The body of every request that is made up."""
    return with_whole_numbers(body)
