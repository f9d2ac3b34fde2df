"""Plans, lists and text searches, which are cheap to send: queries and large messages do not wait for them."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import minwise as mw
from minwise.errors import ConfigError
from minwise.server.index_tasks import QueryTask
from minwise.server.service import LONG_TEXT, MAX_PLANS, Service
from minwise.server.settings import ServerSettings
from minwise.sketches.planning import Plan, plan


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a service whose threads are not started."""
    mw.Index.create(tmp_path / "a.mw").close()
    service = Service(ServerSettings(index=tmp_path / "a.mw"))
    yield service
    service.close()


def run(service: Service, work: Callable[[], Any]) -> None:
    """Run work in an event loop with the threads of the service."""

    async def start_and_run() -> None:
        service.start()
        await work()

    asyncio.run(start_and_run())


def test_a_large_message_is_decoded_while_a_plan_is_computed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both used one thread, so that a flood of plans made long queries 30 times slower."""
    released = threading.Event()

    def slow_plan(**given: Any) -> Plan:  # noqa: ANN401 - parameters of a plan
        assert released.wait(60)
        return plan(**given)

    monkeypatch.setattr(mw, "plan", slow_plan)

    async def work() -> None:
        planned = asyncio.ensure_future(service.describe_plan({"threshold": 0.5}))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(service.run_helper(lambda: "decoded"), 30) == "decoded"
        assert not planned.done()
        released.set()
        assert await planned == plan(threshold=0.5).to_dict()

    run(service, work)


def test_a_long_query_is_answered_while_texts_are_searched(service: Service) -> None:
    """Both used one thread, so that a flood of searches made long queries 190 times slower."""
    released = threading.Event()

    async def work() -> None:
        searches = [asyncio.ensure_future(service.search_texts(lambda _: released.wait(60))) for _ in range(3)]
        listing = asyncio.ensure_future(service.browse(lambda index: len(index)))
        await asyncio.sleep(0)
        text = "word " * LONG_TEXT
        found = await asyncio.wait_for(service.query(QueryTask(text, None, 10, None, "bare")), 30)
        assert found.hits == []
        assert await asyncio.wait_for(service.call_index(lambda index: index.stats()["documents"]), 30) == 0
        assert not listing.done()
        released.set()
        assert await asyncio.gather(*searches, listing) == [True, True, True, 0]

    run(service, work)


def test_a_plan_is_computed_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of plans in memory is bounded; a plan that cannot be reached is refused every time."""
    computed = Counter[float]()

    def counted_plan(threshold: float = 0.8, recall: float = 0.99, **given: Any) -> Plan:  # noqa: ANN401 - as above
        computed[threshold] += 1
        return plan(threshold, recall, **given)

    monkeypatch.setattr(mw, "plan", counted_plan)

    async def work() -> None:
        for _ in range(3):
            assert (await service.describe_plan({"threshold": 0.5}))["threshold"] == 0.5
        assert computed == {0.5: 1}
        for number in range(MAX_PLANS):
            await service.describe_plan({"threshold": 0.5 + number / 10**6, "bands": 4, "rows": 2})
        assert len(service._plans) <= MAX_PLANS
        with pytest.raises(ConfigError):
            await service.describe_plan({"threshold": 0.01, "slots": 2})

    run(service, work)
