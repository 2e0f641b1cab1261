import pytest

from gateway.broker.errors import StreamDoesNotExist
from gateway.broker.topology.exchanges import Binding, Exchange
from tests.unit.gateway.stream.link_rig import Broker


def test_several_bindings_of_an_exchange_are_made_in_one_write_or_none(broker: Broker) -> None:
    run, host = broker.store_rig.run, broker.virtual_hosts.find("/")
    assert host is not None
    run(host.exchanges.declare(Exchange("e")))
    for name in ("a", "b"):
        run(host.streams.create(name, {}))
    given = [Binding(source="e", destination=name, routing_key="k") for name in ("a", "b")]

    with pytest.raises(StreamDoesNotExist):
        run(host.exchanges.bind(*given, Binding(source="e", destination="none", routing_key="k")))
    assert host.exchanges.bindings() == []

    run(host.exchanges.bind(*given, given[0]))
    run(host.exchanges.bind(*given))

    assert host.exchanges.bindings() == given
    assert host.exchanges.route("e", "k") == ["a", "b"]
    run(host.exchanges.unbind(given[0]))
    assert host.exchanges.route("e", "k") == ["b"]
