"""Exchanges that go with their last binding, while something else is under way with them."""

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.errors import InternalError
from gateway.broker.hosts import super_streams
from gateway.broker.streams.streams import Stream
from gateway.broker.topology.exchange import SUPER_STREAM
from gateway.broker.topology.exchanges import Binding, Exchange, Exchanges
from gateway.pending import Pending, start
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.broker.streams.test_streams import catalogued, refuse
from tests.unit.gateway.broker.topology.test_exchanges import exchanges, rows
from tests.unit.gateway.stream.link_rig import Broker

A, B = (
    Binding(source="e", destination="a", routing_key="k"),
    Binding(source="e", destination="b", routing_key="k"),
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Streams `a`, `b` and `c`; an exchange that goes with its last binding, which is that of a."""
    broker = Broker(tmp_path / "data")
    broker.link().create("a", "b", "c")
    arguments = {SUPER_STREAM: True}
    given = Exchange("e", auto_delete=True, arguments=arguments)
    broker.store_rig.run(exchanges(broker).declare(given))
    broker.store_rig.run(exchanges(broker).bind(A))
    yield broker
    broker.close()


def delete(broker: Broker, stream: str) -> Coroutine[Any, Any, None]:
    return broker.streams.delete(stream, broker.streams.logs.tell_watchers)


def together(broker: Broker, *changes: Coroutine[Any, Any, None]) -> list[Pending[None]]:
    """Begin each when those before it wait for the store; see all of them through."""
    begun = [start(change) for change in changes]
    assert not any(each.is_settled for each in begun)
    broker.loop.run_until(lambda: all(each.is_settled for each in begun))
    assert len(exchanges(broker).locks) == len(broker.streams.locks) == 0
    return begun


def restarted(broker: Broker, tmp_path: Path) -> Broker:
    return Broker(broker.store_rig.crash_copy(tmp_path / "copy"))


def names(found: Exchanges) -> set[str]:
    return {each.name for each in found.all() if not each.name.startswith("amq.")}


def test_an_exchange_stays_for_a_binding_that_is_made_while_the_stream_of_its_last_one_goes(
    broker: Broker, tmp_path: Path
) -> None:
    for each in together(broker, exchanges(broker).bind(B), delete(broker, "a")):
        each.result()

    assert exchanges(broker).route("e", "k") == ["b"]
    again = restarted(broker, tmp_path)
    assert exchanges(again).route("e", "k") == ["b"]
    again.close()


def test_a_stream_bound_while_the_stream_of_the_last_binding_goes_is_deleted_as_any_other(
    broker: Broker, tmp_path: Path
) -> None:
    together(broker, exchanges(broker).bind(B), delete(broker, "a"))
    watcher = broker.link()
    watcher.declare(1, "b")

    assert broker.link().code("delete_stream", m.DeleteStream("b")) == ResponseCode.OK

    assert [each.stream for each in watcher.take("metadata_update")] == ["b"]
    assert names(exchanges(broker)) == set()
    again = restarted(broker, tmp_path)
    assert again.streams.names() == ["c"]
    assert (names(exchanges(again)), rows(again)) == (set(), 0)
    again.close()


def test_an_exchange_goes_when_the_binding_that_it_stayed_for_is_refused(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deletion = delete(broker, "a")
    with monkeypatch.context() as patch:
        put = broker.streams.catalogue.put

        async def refused(*entries: Any, **options: Any) -> None:  # noqa: ANN401 - those of put
            patch.undo()
            await put()  # what is refused takes its time too
            gone.append(start(deletion))
            refuse(patch, broker, "update_table")
            try:
                await put(*entries, **options)
            finally:
                patch.undo()

        gone: list[Pending[None]] = []
        patch.setattr(broker.streams.catalogue, "put", refused)
        with pytest.raises(InternalError):
            broker.store_rig.run(exchanges(broker).bind(B))
    broker.loop.run_until(lambda: gone[0].is_settled)
    assert names(exchanges(broker)) == set()
    again = restarted(broker, tmp_path)
    assert (names(exchanges(again)), rows(again)) == (set(), 0)
    again.close()


def test_an_exchange_goes_when_its_last_bindings_go_both_at_once(
    broker: Broker, tmp_path: Path
) -> None:
    broker.store_rig.run(exchanges(broker).bind(B))

    for each in together(broker, exchanges(broker).unbind(B), delete(broker, "a")):
        each.result()

    assert names(exchanges(broker)) == set()
    again = restarted(broker, tmp_path)
    assert (names(exchanges(again)), rows(again)) == (set(), 0)
    again.close()


def test_an_exchange_goes_once_when_the_stream_of_the_binding_that_is_undone_goes_too(
    broker: Broker, tmp_path: Path
) -> None:
    for each in together(broker, exchanges(broker).unbind(A), delete(broker, "a")):
        each.result()

    assert names(exchanges(broker)) == set()
    again = restarted(broker, tmp_path)
    assert (names(exchanges(again)), rows(again)) == (set(), 0)
    again.close()


def test_an_exchange_stays_for_partitions_that_are_added_while_its_only_one_goes(
    broker: Broker, tmp_path: Path
) -> None:
    host = broker.virtual_host
    addition = super_streams.add_partitions(host, "e", ("p", "q"), ("1", "2"))

    for each in together(broker, addition, delete(broker, "a")):
        each.result()

    assert super_streams.partitions_of(host, "e") == ("p", "q")
    again = restarted(broker, tmp_path)
    assert super_streams.partitions_of(again.virtual_host, "e") == ("p", "q")
    again.close()


def test_an_exchange_stays_while_an_addition_to_it_waits_for_the_lock_of_a_name(
    broker: Broker, tmp_path: Path
) -> None:
    host, other = broker.virtual_host, Pending[None]()

    async def use_name() -> None:
        async with host.streams.locks.hold("p"):
            await other

    using = start(use_name())
    addition = start(super_streams.add_partitions(host, "e", ("p",), ("1",)))
    broker.store_rig.run(delete(broker, "a"))
    assert not addition.is_settled
    assert "e" in host.exchanges
    other.settle(None)
    broker.loop.run_until(lambda: addition.is_settled and using.is_settled)
    addition.result()

    assert super_streams.partitions_of(host, "e") == ("p",)
    again = restarted(broker, tmp_path)
    assert super_streams.partitions_of(again.virtual_host, "e") == ("p",)
    again.close()


@pytest.mark.parametrize("is_together", [False, True], ids=["alone", "super stream"])
def test_a_stream_is_deleted_though_who_is_told_of_it_fails(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_together: bool,
) -> None:
    def fail(_: Stream) -> None:
        raise KeyError("for the test")

    monkeypatch.setattr(broker.streams, "when_gone", fail)
    watchers = [broker.link() for _ in range(3)]
    for each in watchers:
        each.declare(1, "a")
    monkeypatch.setattr(watchers[1].ports, "send", fail)

    if is_together:
        asked, request = "delete_super_stream", m.DeleteSuperStream("e")
    else:
        asked, request = "delete_stream", m.DeleteStream("a")  # type: ignore[assignment]
    assert broker.link().code(asked, request) == ResponseCode.OK

    told = [watchers[0].take("metadata_update"), watchers[2].take("metadata_update")]
    assert [[each.stream for each in updates] for updates in told] == [["a"], ["a"]]
    assert [each[0] for each in catalogued(broker)] == ["b", "c"]
    assert not broker.streams.storage.leftovers
    assert "telling that a stream is gone failed stream=a" in caplog.text
    again = restarted(broker, tmp_path)
    assert again.streams.names() == ["b", "c"]
    again.close()
