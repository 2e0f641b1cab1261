"""Lines about refusals: some of them, of bounded size, and the others counted."""

import logging

import pytest

from gateway.broker.access.refusals import (
    LINES_MAX,
    LINES_OF_ONE,
    NAME_BYTES_MAX,
    PERIOD_S,
    Refusals,
    RefusedLogin,
    cut,
    in_command,
)

log = logging.getLogger(__name__)


class Rig:
    """A limit whose clock the test sets, and what was said."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.refusals = Refusals(lambda: self.now_s)

    def refuse(self, times: int, address: str = "10.0.0.1", user: str = "app") -> None:
        for _ in range(times):
            self.refusals.say(log.warning, address, "refused user=%r", user)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_of_one_address_there_are_some_lines_and_a_count(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.refuse(100_000)
    assert said(caplog) == ["refused user='app'"] * LINES_OF_ONE

    rig.now_s += PERIOD_S
    rig.refuse(2)

    assert said(caplog) == [
        f"refused user='app' unsaid={100_000 - LINES_OF_ONE}",
        "refused user='app'",
    ]


def test_one_address_takes_no_lines_from_another(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.refuse(1000)
    said(caplog)

    rig.refuse(1, "10.0.0.2", "other")

    assert said(caplog) == ["refused user='other' unsaid=990"]


def test_of_all_addresses_together_there_are_some_lines(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100_000):
        rig.refuse(1, f"2001:db8:{number >> 8:x}:{number & 255:x}::1")

    assert len(said(caplog)) == LINES_MAX
    assert len(rig.refusals._said) == LINES_MAX, "no memory for those that are not told of"


@pytest.mark.parametrize("name", ["x" * 8_000, "\udcff" * 8_000, "😀" * 2_000, "\x00" * 8_000])
def test_a_name_takes_a_part_of_a_line(
    rig: Rig, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    rig.refuse(1, user=name)

    (line,) = said(caplog)
    assert line.endswith("…'")
    assert len(line) <= 6 * NAME_BYTES_MAX + 20


@pytest.mark.parametrize("name", ["", "app", "é" * 127, "\udcff" * 255])
def test_a_name_of_that_size_is_told_whole(name: str) -> None:
    assert cut(name) == name
    assert len(cut("a" * 256)) == 256
    assert cut("é" * 128) == "é" * 127 + "…"


def test_a_login_is_one_line_in_a_period_for_each_address_and_port(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(address: str, protocol: str) -> None:
        RefusedLogin(
            address=address, protocol=protocol, user="app", reason="no", helps="a setting"
        ).tell(rig.refusals.say)

    for _ in range(1_000):
        for address in ("10.0.0.1", "10.0.0.2"):
            refused(address, "stream")
            refused(address, "http")
    assert [line.partition(" user")[0] for line in said(caplog)] == [
        "login refused peer=10.0.0.1 protocol=stream",
        "login refused peer=10.0.0.1 protocol=http",
        "login refused peer=10.0.0.2 protocol=stream",
        "login refused peer=10.0.0.2 protocol=http",
    ]

    rig.now_s += PERIOD_S
    refused("10.0.0.1", "stream")
    [line] = said(caplog)
    assert line.endswith(" user='app' mechanism='' reason=no helps=a setting unsaid=3996")


def test_the_table_of_addresses_is_bounded(rig: Rig) -> None:
    for number in range(10_000):
        address = f"10.0.{number // 250}.{number % 250}"
        rig.refusals.say(log.warning, address, "refused", once="login stream")

    assert len(rig.refusals._said) == LINES_MAX
    assert len(rig.refusals._said_once) == LINES_MAX


@pytest.mark.parametrize(
    ("user", "shown"),
    [("app", "app"), ("an app", "'an app'"), ("a\nb", "USER"), ("\udcff", "USER")],
)
def test_a_command_has_a_name_that_can_be_typed(user: str, shown: str) -> None:
    assert in_command(user) == shown
