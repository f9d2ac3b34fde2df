"""Hypothesis profiles: ``steady``, the default, tries the same examples on every run.

``pytest --hypothesis-profile=search`` tries new examples, and 50 times as many.
"""

from hypothesis import HealthCheck, settings

# Long texts against the plain-Python reference are slow by design, so neither a deadline nor a health check times them.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=3000)
settings.load_profile("steady")
