"""Virtual hosts on a real store: made, found again, deleted with everything in them."""

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.broker.errors import (
    InternalError,
    NoSuchVirtualHost,
    PreconditionFailed,
    UnusableValue,
    VirtualHostBusy,
    VirtualHostExists,
)
from gateway.broker.hosts.virtual_host import VirtualHost
from gateway.broker.hosts.virtual_hosts import VirtualHosts, VirtualHostsPorts, open_virtual_hosts
from gateway.log import names
from gateway.pending import start
from store.errors import DiskFull, NoSuchSegment
from tests.rings import no_rings
from tests.unit.gateway.stream.link_rig import Broker


def create(broker: Broker, name: str) -> VirtualHost:
    created: VirtualHost = broker.store_rig.run(broker.virtual_hosts.create(name))
    return created


def reopen(broker: Broker) -> VirtualHosts:
    ports = broker.virtual_hosts._ports
    hosts: VirtualHosts = broker.store_rig.run(
        open_virtual_hosts(
            VirtualHostsPorts(ports.store, ports.open_host, broker.access, broker.connections)
        )
    )
    return hosts


def test_the_first_start_makes_the_default_one(broker: Broker) -> None:
    assert broker.virtual_hosts.names() == ["/"]
    assert broker.virtual_hosts.entry("/").description == "Default virtual host"


def test_a_virtual_host_is_there_after_a_restart_with_what_was_said_of_it(broker: Broker) -> None:
    hosts, run = broker.virtual_hosts, broker.store_rig.run
    run(hosts.create("v", description="d", tags=("t",), default_queue_type="stream"))
    run(hosts.create("w"))
    run(hosts.describe("w", description="later", metadata={"a": [1]}))

    reopened = reopen(broker)

    assert reopened.names() == ["/", "v", "w"]
    for name in ("v", "w"):
        assert reopened.entry(name) == hosts.entry(name)
    assert (hosts.entry("v").tags, hosts.entry("w").metadata) == (("t",), {"a": [1]})


def test_each_has_streams_of_its_own(broker: Broker) -> None:
    other, run = create(broker, "v"), broker.store_rig.run
    run(broker.streams.create("s", {}))
    run(other.streams.create("s", {"max-age": "1h"}))

    run(other.streams.delete("s", other.streams.logs.tell_watchers))

    assert broker.streams.names() == ["s"]
    assert other.streams.names() == []


def test_what_a_deleted_user_has_goes_in_each(broker: Broker) -> None:
    other, run = create(broker, "v"), broker.store_rig.run
    run(broker.access.put_user(User("app", None)))
    for host in (broker.virtual_host, other):
        run(host.streams.create("s", {}))
        number = host.commits.filling.open("app", "q", 0, "s").number
        run(host.commits.filling.close("app", number))
        run(host.commits.commit("app", "q", 0, [number], lambda _: None))
        host.commits.filling.open("app", "q", 1, "s")

    run(broker.access.delete_user("app"))

    for host in (broker.virtual_host, other):
        assert (len(host.commits.sinks), len(host.commits.stages)) == (0, 0)


def test_nothing_of_a_deleted_one_is_left(broker: Broker) -> None:
    other, run = create(broker, "v"), broker.store_rig.run
    stream = run(other.streams.create("s", {}))
    run(other.streams.logs.of(stream))
    run(
        broker.access.put_permission(
            UserPermission(user="guest", virtual_host="v", configure=".*", write=".*", read=".*")
        )
    )

    run(broker.virtual_hosts.delete("v"))

    assert broker.virtual_hosts.find("v") is None
    assert broker.access.permission("guest", "v") is None
    store, do = broker.store_rig.store, broker.store_rig.do
    segment = names.data_segment("v", "s", stream.entry.generation)
    for name in (segment, names.meta_table("v"), names.tracking_table("v")):
        with pytest.raises(NoSuchSegment):
            do(store.info, name)
    assert reopen(broker).names() == ["/"]
    again = create(broker, "v")
    assert again.streams.names() == []


def test_the_default_one_can_be_deleted_and_stays_away(broker: Broker) -> None:
    broker.store_rig.run(broker.virtual_hosts.delete("/"))

    assert reopen(broker).names() == []


def test_a_stream_that_is_being_created_meanwhile_is_not_left_behind(broker: Broker) -> None:
    other, run = create(broker, "v"), broker.store_rig.run
    run(other.streams.create("first", {}))
    creations = [start(other.streams.create(f"s{number}", {})) for number in range(3)]
    deletion = start(broker.virtual_hosts.delete("v"))
    broker.loop.run_until(lambda: deletion.is_settled and all(c.is_settled for c in creations))

    deletion.result()
    assert other.streams.names() == []
    with pytest.raises(InternalError):
        run(other.streams.create("late", {}))


def test_a_deletion_that_fails_is_finished_at_the_next_start(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, run = create(broker, "v"), broker.store_rig.run
    run(other.streams.create("s", {}))

    def refuse(*_: object, done: object) -> None:
        broker.loop.call_soon(done, DiskFull("no"))  # type: ignore[arg-type]  # a callback

    with monkeypatch.context() as patched:
        patched.setattr(broker.store_rig.store, "delete_segment", refuse)
        with pytest.raises(InternalError):
            run(broker.virtual_hosts.delete("v"))

    assert broker.virtual_hosts.names() == ["/"]
    with pytest.raises(VirtualHostBusy):
        create(broker, "v")
    reopened = reopen(broker)
    assert reopened.names() == ["/"]
    run(reopened.create("v"))


def test_a_deletion_that_fails_can_be_tried_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "v")

    def refuse(*_: object, done: object, **__: object) -> None:
        broker.loop.call_soon(done, DiskFull("no"))  # type: ignore[arg-type]  # a callback

    with monkeypatch.context() as patched:
        patched.setattr(broker.store_rig.store, "delete_table", refuse)
        with pytest.raises(DiskFull):
            broker.store_rig.run(broker.virtual_hosts.delete("v"))

    broker.store_rig.run(broker.virtual_hosts.delete("v"))
    create(broker, "v")


def test_what_is_there_is_not_created_and_what_is_not_is_not_deleted(broker: Broker) -> None:
    run = broker.store_rig.run
    with pytest.raises(VirtualHostExists):
        create(broker, "/")
    with pytest.raises(UnusableValue):
        create(broker, "")
    with pytest.raises(NoSuchVirtualHost):
        run(broker.virtual_hosts.delete("v"))
    with pytest.raises(NoSuchVirtualHost):
        run(broker.virtual_hosts.describe("v"))
    with pytest.raises(NoSuchVirtualHost):
        run(
            broker.access.put_permission(
                UserPermission(user="guest", virtual_host="v", configure="", write="", read="")
            )
        )


def test_a_limit_of_streams_counts_at_creation(broker: Broker) -> None:
    run, streams = broker.store_rig.run, broker.streams
    run(broker.access.set_virtual_host_limits("/", {"max-queues": 2}))
    for name in ("a", "b"):
        run(streams.create(name, {}))

    with pytest.raises(PreconditionFailed, match="as many streams"):
        run(streams.create("c", {}))

    run(streams.delete("a", streams.logs.tell_watchers))
    run(streams.create("c", {}))
    run(broker.access.set_virtual_host_limits("/", {}))
    run(streams.create("d", {}))


def test_the_connections_of_a_deleted_one_are_told_of_their_streams_and_end(
    broker: Broker,
) -> None:
    run = broker.store_rig.run
    other = create(broker, "v")
    run(other.streams.create("s", {}))
    run(
        broker.access.put_permission(
            UserPermission(user="guest", virtual_host="v", configure=".*", write=".*", read=".*")
        )
    )
    stays, goes = broker.link(), broker.link(virtual_host="v")
    goes.declare(1, "s")

    run(broker.virtual_hosts.delete("v"))

    assert [update.stream for update in goes.take("metadata_update")] == ["s"]
    assert goes.ports.is_stopped
    assert not stays.ports.is_stopped


def test_a_virtual_host_that_is_deleted_goes_without_the_collector(broker: Broker) -> None:
    run = broker.store_rig.run
    with no_rings():
        other = create(broker, "v")
        run(other.streams.create("s", {"max-age": "1h"}))
        run(other.streams.logs.of(other.streams.find("s")))
        run(broker.virtual_hosts.delete("v"))
        del other
