"""The settings of the protocol, and what the server says of itself."""

from gateway.settings.model import Settings
from gateway.stream.settings import advertised, advertised_over_tls, peer_properties


def test_the_server_says_of_itself_what_clients_look_for() -> None:
    properties = peer_properties("9.9")

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


def test_clients_are_told_the_port_that_is_listened_on_unless_another_is_set() -> None:
    settings = Settings()
    assert advertised(settings, 1) == (settings.stream.advertised_host, 1)
    assert advertised_over_tls(settings, 2) == (settings.stream.advertised_host, 2)

    stream = settings.stream.model_copy(update={"advertised_port": 3})
    tls = settings.tls.model_copy(update={"advertised_host": "a", "advertised_port": 4})
    changed = settings.model_copy(update={"stream": stream, "tls": tls})
    assert advertised(changed, 1)[1] == 3
    assert advertised_over_tls(changed, 2) == ("a", 4)
