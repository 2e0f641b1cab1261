"""What the line says that a server prints when it serves."""

from gateway.process import shown


def test_an_address_of_ipv6_stands_in_brackets_before_its_port() -> None:
    assert shown("127.0.0.1", 5552) == "127.0.0.1:5552"
    assert shown("localhost", 5552) == "localhost:5552"
    assert shown("::1", 5552) == "[::1]:5552"
