import pytest

from gateway.network.addresses import is_loopback, names_loopback, shown, source_of


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("0.0.0.0", False),
    ],
)
def test_a_peer_on_this_machine_is_told_from_others(address: str, *, is_here: bool) -> None:
    assert is_loopback(address) == is_here


@pytest.mark.parametrize(
    ("host", "leads_back"),
    [
        ("localhost", True),
        ("LocalHost.", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost.example.org", False),
        ("streams.example.org", False),
        ("192.0.2.7", False),
        ("", False),
    ],
)
def test_a_host_that_leads_clients_to_themselves_is_told_from_others(
    host: str, *, leads_back: bool
) -> None:
    assert names_loopback(host) is leads_back


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
        ("a name", "a name"),
    ],
)
def test_what_an_address_counts_as(address: str, source: str) -> None:
    assert source_of(address) == source


def test_an_address_of_ipv6_stands_in_brackets_before_its_port() -> None:
    assert shown("127.0.0.1", 5552) == "127.0.0.1:5552"
    assert shown("localhost", 5552) == "localhost:5552"
    assert shown("::1", 5552) == "[::1]:5552"
