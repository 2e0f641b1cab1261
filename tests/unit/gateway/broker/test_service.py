"""How the whole server serves: alarms, and doors that are shut and opened again."""

import pytest

from gateway.broker.connections import Connections
from gateway.broker.service import About, ListenerBlocked, ScarceResource, ServiceState
from tests.unit.gateway.broker.access.access_rig import Client


class Hatch:
    """A door of the test."""

    protocol = "stream"
    addresses = (("127.0.0.1", 5552),)

    def __init__(self) -> None:
        self.is_shut = False
        self.is_taken = False
        self.cuts = 0

    def shut(self) -> None:
        assert not self.is_shut
        self.is_shut = True

    def reopen(self) -> None:
        if self.is_taken:
            raise OSError(98, "Address already in use", "127.0.0.1:5552")
        self.is_shut = False

    def cut(self) -> int:
        self.cuts += 1
        return 3


@pytest.fixture
def hatch() -> Hatch:
    return Hatch()


@pytest.fixture
def service(hatch: Hatch) -> ServiceState:
    made = ServiceState(Connections())
    made.add_listener(hatch)
    return made


def test_the_disk_alarm_holds_everybody_and_the_memory_alarm_nobody() -> None:
    connections = Connections()
    client = Client("x")
    connections.add(client)
    service = ServiceState(connections)

    service.set_alarm(ScarceResource.MEMORY)
    before = service.takes_publishers
    service.set_alarm(ScarceResource.DISK)
    service.set_alarm(ScarceResource.DISK)
    assert (before, service.takes_publishers) == (True, False)
    assert service.alarms == [ScarceResource.DISK, ScarceResource.MEMORY]
    service.clear_alarm(ScarceResource.DISK)
    service.clear_alarm(ScarceResource.DISK)
    service.clear_alarm(ScarceResource.MEMORY)

    assert client.events == ["held", "released"]
    assert (service.takes_publishers, service.alarms) == (True, [])


def test_a_drain_shuts_the_doors_and_cuts_nobody(service: ServiceState, hatch: Hatch) -> None:
    service.drain()
    service.drain()
    assert (hatch.is_shut, service.is_draining, hatch.cuts) == (True, True, 0)

    service.revive()
    service.revive()
    assert (hatch.is_shut, service.is_draining) == (False, False)


def test_a_stop_cuts_everybody_and_only_a_start_ends_it(
    service: ServiceState, hatch: Hatch
) -> None:
    assert service.stop() == 3
    service.revive()
    assert (hatch.is_shut, service.is_stopped) == (True, True)

    service.start()

    assert (hatch.is_shut, service.is_stopped) == (False, False)


def test_a_start_does_not_end_a_drain(service: ServiceState, hatch: Hatch) -> None:
    service.drain()
    service.stop()
    service.start()
    assert hatch.is_shut

    service.revive()

    assert not hatch.is_shut


def test_a_door_whose_address_is_taken_leaves_all_as_it_was(
    service: ServiceState, hatch: Hatch
) -> None:
    service.drain()
    hatch.is_taken = True

    with pytest.raises(ListenerBlocked, match=r"127\.0\.0\.1:5552: Address already in use"):
        service.revive()

    assert service.is_draining
    hatch.is_taken = False
    service.revive()
    assert not hatch.is_shut


def test_the_server_says_of_itself_what_clients_look_for() -> None:
    properties = About("9.9").peer_properties

    assert set(properties) == {
        "cluster_name",
        "copyright",
        "information",
        "platform",
        "product",
        "version",
    }
    assert properties["version"] == "4.3.6"
    assert properties["product"] == "RabbitMQ", "clients compare it"
    assert "Hutch 9.9" in properties["platform"]
    assert "Erlang" in properties["platform"]
