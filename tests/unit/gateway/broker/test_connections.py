from gateway.broker.connections import Connections
from tests.unit.gateway.broker.access.access_rig import Client


def test_connections_are_counted_and_found_by_user_and_virtual_host() -> None:
    connections = Connections()
    a, b, c = Client("x", "/"), Client("x", "v"), Client("y", "v")
    for each in (a, b, c):
        connections.add(each)

    assert list(connections) == [a, b, c]
    assert len(connections) == 3
    assert connections.of(user="x") == [a, b]
    assert connections.of(virtual_host="v") == [b, c]
    assert connections.of(user="x", virtual_host="v") == [b]
    assert connections.of() == [a, b, c]
    assert connections.count_of_user("x") == 2
    assert connections.count_of_virtual_host("v") == 2
    assert connections.count_of_protocol("stream") == 3


def test_who_is_gone_is_forgotten_once() -> None:
    connections = Connections()
    a, b = Client("x"), Client("x")
    connections.add(a)
    connections.add(b)

    for _ in range(2):
        connections.remove(a)

    assert connections.count_of_user("x") == 1
    other = Client("x", protocol="mqtt")
    connections.add(other)
    connections.remove(b)
    assert (connections.count_of_protocol("stream"), connections.count_of_protocol("mqtt")) == (
        0,
        1,
    )
    connections.remove(other)
    assert connections.count_of_user("x") == connections.count_of_virtual_host("/") == 0
    assert len(connections) == 0


def test_connections_may_go_while_all_are_looked_at() -> None:
    connections = Connections()
    for _ in range(3):
        connections.add(Client("x"))

    for connection in connections:
        connections.remove(connection)

    assert len(connections) == 0
