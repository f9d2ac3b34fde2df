"""Hypothesis profiles, and the marker of tests that need POSIX.

The profile ``steady``, the default, tries the same examples on every run. ``pytest --hypothesis-profile=search`` tries
new examples, and 50 times as many.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

# Long texts against the plain-Python reference are slow by design, so neither a deadline nor a health check times them.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=3000)
settings.load_profile("steady")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that need POSIX where it is absent."""
    if os.name == "posix" and not config.pluginmanager.has_plugin("support.windows_stand_in"):
        return
    for item in items:
        if item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs POSIX"))
