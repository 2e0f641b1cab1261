"""Settings of a cluster."""

import pytest

from gateway.settings.cluster import ClusterSettings, this_machine
from gateway.settings.errors import ConfigError
from gateway.settings.sources import load


@pytest.mark.parametrize(
    ("flag", "wrong"),
    [
        ("--log", "a"),
        ("--log", "http://a"),
        ("--log", "nats://a, nats://b c"),
        ("--member", ""),
        ("--member", "a b"),
        ("--member", "x" * 65),
        ("--member", "a.b"),
    ],
)
def test_a_wrong_address_or_name_is_named_with_its_flag(flag: str, wrong: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        load({flag: wrong})


def test_without_a_name_a_member_has_that_of_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node_1.example.org")
    assert this_machine() == "node_1"
    assert ClusterSettings().member_name == "node_1"
    monkeypatch.setattr("socket.gethostname", lambda: "größe.example.org")
    assert this_machine() == "gr--e"
    monkeypatch.setattr("socket.gethostname", lambda: "")
    assert this_machine() == "member"
