"""Random steps with kills agree with an oracle in plain Python: every result, and the index after every kill.

By default some hundred steps and a few kills; `make torture` makes about 150,000 steps and 600 kills.
"""

import random
from collections.abc import Callable

import pytest
from support.commands import TORTURE
from support.index_faults.children import fast_folder
from support.index_faults.model_checker import ModelChecker

ROUNDS, STEPS = (300, 330) if TORTURE else (4, 60)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", [1, 2])
def test_steps_and_kills_agree_with_the_oracle(seed: int, record_property: Callable[[str, object], None]) -> None:
    with fast_folder() as folder:
        checker = ModelChecker(folder, random.Random(seed))
        for _ in range(ROUNDS):
            checker.round(STEPS)
    print(checker.summary())  # noqa: T201 - for a record of the run
    record_property("summary", checker.summary())
    assert checker.counts["kills"] >= ROUNDS / 2, checker.summary()
    assert checker.counts["steps"] >= ROUNDS * STEPS / 4, checker.summary()
