"""Super streams as a whole: made or not made, deleted or not, whatever happens in between."""

import itertools
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.access.access import Demand, to_configure, to_manage_super_stream
from gateway.broker.errors import (
    BrokerError,
    ExchangeDoesNotExist,
    ExchangeExists,
    InternalError,
    PreconditionFailed,
    StreamExists,
)
from gateway.broker.hosts import super_streams
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.pending import Pending, start
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.streams.test_streams import catalogued, refuse
from tests.unit.gateway.broker.topology.test_exchanges import rows
from tests.unit.gateway.stream.link_rig import Broker

CHANGES = ("create_segment", "delete_segment", "update_table", "remove_keys")
THREE = ("x-0", "x-1", "x-2")
FIVE = (*THREE, "x-3", "x-4")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    broker.link().create("s")
    yield broker
    broker.close()


Change = Callable[[Broker], Coroutine[Any, Any, object]]


def creation(broker: Broker, arguments: dict[str, str] | None = None) -> Coroutine[Any, Any, None]:
    return super_streams.create_super_stream(
        broker.virtual_host, "x", THREE, ("0", "1", "2"), arguments or {}
    )


@pytest.mark.parametrize("kind", ["stream", "super_stream"])
def test_what_a_creation_said_is_logged_once_with_a_warning_of_what_means_nothing(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level("INFO")
    given = {"x-max-age": "1h", "max-length-bytes": "-1", "colour": "red"}

    if kind == "super_stream":
        made = start(creation(broker, given))
        broker.loop.run_until(lambda: made.is_settled)
    else:
        assert broker.link().code("create_stream", m.CreateStream("x", given)) == ResponseCode.OK

    (created,) = (line for line in caplog.messages if " created " in line)
    (warned,) = (each.getMessage() for each in caplog.records if each.levelname == "WARNING")
    assert f"{kind}=x virtual_host=/" in created
    assert str(given) in created
    assert "did you mean max-age?" in warned
    assert "'colour' is no argument" in warned
    assert "below 0" in warned


def addition(broker: Broker) -> Coroutine[Any, Any, None]:
    return super_streams.add_partitions(broker.virtual_host, "x", FIVE[3:], ("3", "4"))


def deletion(broker: Broker) -> Coroutine[Any, Any, None]:
    return super_streams.delete_super_stream(broker.virtual_host, "x")


def run(broker: Broker, *changes: Change) -> None:
    for change in changes:
        broker.store_rig.run(change(broker))


def partitions(broker: Broker) -> tuple[str, ...] | None:
    try:
        return tuple(super_streams.partitions_of(broker.virtual_host, "x"))
    except ExchangeDoesNotExist:
        return None


def assert_nothing_is_left_over(broker: Broker) -> None:
    """Hold table and segments to what there is; everything of a super stream or nothing."""
    found = partitions(broker)
    streams = {"s", *(found or ())}
    assert {stream.name for stream in broker.streams} == streams
    assert {(name, state) for name, _, state in catalogued(broker)} == {
        (name, "live") for name in streams
    }
    assert rows(broker) == (0 if found is None else 1 + len(found))
    segments = [name for name in broker.store_rig.store.catalogue.names if "kvtable" not in name]  # type: ignore[attr-defined]
    assert len(segments) == len(streams)
    for number, name in enumerate(found or ()):
        assert broker.virtual_host.exchanges.route("x", str(number)) == [name]


def die_after(broker: Broker, patch: pytest.MonkeyPatch, count: int) -> list[None]:
    """Let the store do so many changes more and then nothing, as if the process were gone.

    Returns:
        A list that grows by one with each change that the store is asked for.
    """
    asked: list[None] = []
    for operation in CHANGES:

        def change(real: Callable[..., None], *arguments: Any, **options: Any) -> None:  # noqa: ANN401
            asked.append(None)
            if len(asked) <= count:
                real(*arguments, **options)

        wrap_operation(patch, broker.store_rig.store, operation, change)
    return asked


@pytest.mark.parametrize(
    ("before", "change", "allowed"),
    [
        ([], creation, (None, THREE)),
        ([creation], addition, (THREE, FIVE)),
        ([creation, addition], deletion, (FIVE, None)),
    ],
    ids=["creation", "addition", "deletion"],
)
def test_death_at_any_point_leaves_all_or_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: list[Change],
    change: Change,
    allowed: tuple[object, object],
) -> None:
    outcomes = []
    for count in itertools.count():
        directory = tmp_path / str(count)
        directory.mkdir()
        broker = Broker(directory)
        broker.link().create("s")
        run(broker, *before)
        with monkeypatch.context() as patch:
            asked = die_after(broker, patch, count)
            changed = start(change(broker))
            broker.loop.run_until(lambda: len(asked) > count or changed.is_settled)  # noqa: B023
        broker.close()

        again = Broker(directory)
        assert_nothing_is_left_over(again)
        outcomes.append(partitions(again))
        run(again, *([deletion] if outcomes[-1] else []), creation)
        assert partitions(again) == THREE
        again.close()
        if len(asked) <= count:
            break

    assert len(outcomes) >= 5
    assert outcomes == sorted(outcomes, key=allowed.index)
    assert (outcomes[0], outcomes[-1]) == allowed


@pytest.mark.parametrize("operation", ["create_segment", "update_table"])
def test_what_the_store_refuses_to_create_is_not_there(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    for before, change in (([], creation), ([creation], addition)):
        run(broker, *before)
        with monkeypatch.context() as patch:
            refuse(patch, broker, operation)
            with pytest.raises(InternalError):
                run(broker, change)
        assert partitions(broker) == (THREE if before else None)
    run(broker, addition)
    assert partitions(broker) == FIVE
    assert_nothing_is_left_over(broker)


@pytest.mark.parametrize("refused_at", [0, 1, 2])
def test_a_creation_that_fails_late_is_undone(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, refused_at: int
) -> None:
    put = broker.streams.catalogue.put
    calls = itertools.count()

    async def put_sometimes(*entries: Any, **options: Any) -> None:  # noqa: ANN401
        if next(calls) == refused_at:
            with monkeypatch.context() as patch:
                refuse(patch, broker, "update_table")
                await put(*entries, **options)
        await put(*entries, **options)

    with monkeypatch.context() as patch:
        patch.setattr(broker.streams.catalogue, "put", put_sometimes)
        if refused_at < 2:
            with pytest.raises(InternalError):
                run(broker, creation)
        else:
            run(broker, creation)

    assert partitions(broker) == (None if refused_at < 2 else THREE)
    assert_nothing_is_left_over(broker)


def test_a_deletion_that_the_store_refuses_to_note_changes_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(broker, creation)
    client = broker.link()
    client.declare(1, "x-0")
    with monkeypatch.context() as patch:
        refuse(patch, broker, "update_table")
        code = client.code("delete_super_stream", m.DeleteSuperStream("x"))

    assert code == ResponseCode.INTERNAL_ERROR
    assert client.take("metadata_update") == []
    client.publish(1, (1, b"a"))
    broker.settle("x-0")
    assert client.confirmed() == [(1, (1,))]
    assert_nothing_is_left_over(broker)


@pytest.mark.parametrize("operation", ["delete_segment", "remove_keys"])
def test_a_deletion_that_the_store_refuses_to_finish_is_finished_later(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, operation: str, tmp_path: Path
) -> None:
    run(broker, creation)
    client = broker.link()
    client.declare(1, "x-0")
    with monkeypatch.context() as patch:
        refuse(patch, broker, operation)
        code = client.code("delete_super_stream", m.DeleteSuperStream("x"))
        assert code == ResponseCode.INTERNAL_ERROR
        assert len(client.take("metadata_update")) == 1
        assert partitions(broker) is None
    run(broker, creation)
    assert partitions(broker) == THREE

    broker.close()
    again = Broker(tmp_path)
    assert_nothing_is_left_over(again)
    again.close()


def test_a_refused_permission_leaves_a_super_stream_as_it_is(broker: Broker) -> None:
    run(broker, creation)

    async def forbid(_: object) -> None:
        raise PreconditionFailed("for the test")

    with pytest.raises(PreconditionFailed):
        run(
            broker,
            lambda it: super_streams.delete_super_stream(it.virtual_host, "x", require=forbid),
        )
    assert_nothing_is_left_over(broker)
    run(broker, addition, deletion)
    assert partitions(broker) is None


def test_permissions_are_looked_at_again_if_the_partitions_changed_meanwhile(
    broker: Broker,
) -> None:
    run(broker, creation)
    seen: list[list[Demand]] = []

    async def require(demands: Iterable[Demand]) -> None:
        seen.append(list(demands))
        if len(seen) == 2:
            await broker.streams.delete("x-1", broker.streams.logs.tell_watchers)

    run(broker, lambda it: super_streams.delete_super_stream(it.virtual_host, "x", require=require))

    assert seen == [
        to_configure("x"),
        to_manage_super_stream("x", ["x-0", "x-1", "x-2"]),
        to_manage_super_stream("x", ["x-0", "x-2"]),
    ]
    assert partitions(broker) is None


def test_rights_are_judged_by_clean_names_before_the_wait_and_while_the_locks_are_held(
    broker: Broker,
) -> None:
    seen: list[tuple[list[Demand], bool]] = []

    async def require(demands: Iterable[Demand]) -> None:
        are_held = bool(broker.virtual_host.exchanges.locks and broker.streams.locks)
        seen.append((list(demands), are_held))

    broker.store_rig.run(
        super_streams.create_super_stream(
            broker.virtual_host, "x\n", ("x-\r0", "x-1"), ("0", "1"), {}, require=require
        )
    )

    whole = to_manage_super_stream("x", ["x-0", "x-1"])
    assert seen == [(to_configure("x"), False), (whole, False), (whole, True)]
    assert partitions(broker) == ("x-0", "x-1")


# Adding partitions


def test_added_partitions_follow_those_that_are_there(broker: Broker, tmp_path: Path) -> None:
    run(broker, lambda it: creation(it, {"max-age": "1h"}), addition)
    assert partitions(broker) == FIVE
    assert broker.streams.find("x-4").arguments == broker.streams.find("x-0").arguments
    assert [broker.virtual_host.partition_index("x", each) for each in FIVE] == [0, 1, 2, 3, 4]

    broker.close()
    again = Broker(tmp_path)
    assert partitions(again) == FIVE
    assert_nothing_is_left_over(again)
    again.close()


def test_the_order_goes_on_behind_the_last_also_where_partitions_went(broker: Broker) -> None:
    run(broker, creation)
    broker.link().tell("delete_stream", m.DeleteStream("x-0"))
    run(broker, addition)

    assert partitions(broker) == ("x-1", "x-2", "x-3", "x-4")
    assert broker.virtual_host.partition_index("x", "x-3") == 3
    assert broker.virtual_host.partition_index("x", "x-0") == -1
    assert broker.virtual_host.partition_index("nowhere", "x-1") == -1


def test_who_uses_a_partition_is_told_to_ask_again_when_others_are_added(broker: Broker) -> None:
    run(broker, creation)
    writer, reader, other = (broker.link() for _ in range(3))
    writer.declare(1, "x-0", "ref")
    assert reader.code("subscribe", m.Subscribe(1, "x-2", FIRST, 10, {})) == ResponseCode.OK
    other.declare(1, "s")

    run(broker, addition)

    gone = ResponseCode.STREAM_NOT_AVAILABLE
    assert writer.take("metadata_update") == [m.MetadataUpdate(gone, "x-0")]
    assert reader.take("metadata_update") == [m.MetadataUpdate(gone, "x-2")]
    assert other.take("metadata_update") == []
    assert writer.link.publishers == {}
    assert reader.link.subscriptions == {}
    answer = writer.ask(m.StreamsReply, "partitions", m.Partitions("x"))
    assert answer.streams == FIVE
    writer.declare(1, "x-0", "ref")


def test_partitions_are_added_to_super_streams_alone_and_all_or_none(broker: Broker) -> None:
    host = broker.virtual_host
    run(
        broker,
        creation,
        lambda _: host.exchanges.declare(Exchange("e")),
        lambda _: host.exchanges.bind(Binding(source="e", destination="s", routing_key="k")),
    )
    wrong: list[tuple[type[BrokerError], str, tuple[str, ...], tuple[str, ...]]] = [
        (ExchangeDoesNotExist, "nowhere", ("n",), ("0",)),
        (ExchangeDoesNotExist, "", ("n",), ("0",)),
        (PreconditionFailed, "e", ("n",), ("0",)),
        (PreconditionFailed, "amq.direct", ("n",), ("0",)),
        (PreconditionFailed, "x", ("n",), ()),
        (PreconditionFailed, "x", ("n", "n"), ("0", "1")),
        (PreconditionFailed, "x", ("n", "amq.n"), ("0", "1")),
        (StreamExists, "x", ("n", "s"), ("0", "1")),
        (StreamExists, "x", ("n", "x-0"), ("0", "1")),
    ]
    for error, name, names, keys in wrong:
        with pytest.raises(error):
            broker.store_rig.run(super_streams.add_partitions(host, name, names, keys))
    host.partitions_max = 4
    with pytest.raises(PreconditionFailed):
        run(broker, addition)
    assert partitions(broker) == THREE
    assert "n" not in broker.streams


def test_a_deletion_while_partitions_are_added_takes_them_along(broker: Broker) -> None:
    run(broker, creation)
    added = start(addition(broker))
    deleted = start(deletion(broker))
    broker.loop.run_until(lambda: added.is_settled and deleted.is_settled)

    assert partitions(broker) is None
    assert_nothing_is_left_over(broker)


def test_a_partition_deleted_while_others_are_made_stays_deleted(broker: Broker) -> None:
    client = broker.link()
    made = start(creation(broker))
    done = client.start("delete_stream", m.DeleteStream("x-1"))
    client.finish(done)
    broker.loop.run_until(lambda: made.is_settled)

    assert client.answer_to("delete_stream") == m.Status(ResponseCode.OK)
    assert partitions(broker) == ("x-0", "x-2")
    assert rows(broker) == 3


def test_names_are_checked_before_anything_is_made(broker: Broker) -> None:
    run(broker, creation)
    with pytest.raises(ExchangeExists):
        run(broker, creation)
    with pytest.raises(ExchangeExists):
        run(
            broker,
            lambda it: super_streams.create_super_stream(it.virtual_host, "x", ("n",), ("0",), {}),
        )
    assert_nothing_is_left_over(broker)


def test_the_limit_of_streams_counts_partitions(broker: Broker) -> None:
    broker.streams.limits = lambda: {"max-queues": 3}
    with pytest.raises(PreconditionFailed):
        run(broker, creation)
    broker.streams.limits = lambda: {"max-queues": 4}
    run(broker, creation)
    assert partitions(broker) == THREE


def test_creations_at_once_do_not_exceed_the_limit_together(broker: Broker) -> None:
    broker.streams.limits = lambda: {"max-queues": 4}
    before = len(broker.streams)
    started: list[Pending[Any]] = [
        start(broker.streams.create(f"one-{number}", {})) for number in range(3)
    ]
    started.append(start(creation(broker)))
    broker.loop.run_until(lambda: all(each.is_settled for each in started))

    assert len(broker.streams) <= 4
    outcomes = []
    for each in started:
        with suppress(PreconditionFailed):
            each.result()
            outcomes.append(True)
    assert len(outcomes) == len(broker.streams) - before
    # What failed keeps no room: as many as there is room for can be made afterwards.
    for number in range(4 - len(broker.streams)):
        broker.store_rig.run(broker.streams.create(f"more-{number}", {}))
    assert len(broker.streams) == 4


def test_arguments_that_no_stream_may_have_make_nothing(broker: Broker) -> None:
    with pytest.raises(InternalError):
        run(broker, lambda it: creation(it, {"max-length-bytes": "many"}))
    assert partitions(broker) is None
    assert_nothing_is_left_over(broker)


@pytest.mark.parametrize("name", ["", "amq.direct"])
def test_exchanges_of_every_virtual_host_cannot_be_deleted(broker: Broker, name: str) -> None:
    with pytest.raises(ExchangeDoesNotExist):
        run(broker, lambda it: super_streams.delete_super_stream(it.virtual_host, name))
    assert name in broker.virtual_host.exchanges


def test_the_place_of_a_partition_is_that_in_its_first_super_stream_by_name(
    broker: Broker,
) -> None:
    host = broker.virtual_host
    binding = Binding(source="e", destination="x-2", routing_key="k")
    run(
        broker,
        creation,
        lambda _: super_streams.create_super_stream(host, "a", ("a-0",), ("0",), {}),
        lambda _: host.exchanges.declare(Exchange("e")),
        lambda _: host.exchanges.bind(binding),
    )
    places = super_streams.PartitionPlaces(host)
    found = [places.of(broker.stream(name)) for name in ("s", *THREE, "a-0")]
    assert found == [None, ("x", 0), ("x", 1), ("x", 2), ("a", 0)]

    twice = Binding(source="a", destination="x-2", routing_key="1")
    run(broker, lambda _: host.exchanges.bind(twice))
    assert super_streams.PartitionPlaces(host).of(broker.stream("x-2")) == ("a", 1)
