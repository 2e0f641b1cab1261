"""Tables of the broker whose entries are damaged: one clear line, or rebuilt."""

from pathlib import Path

import pytest

from gateway.broker.access.access import open_access
from gateway.broker.connections import Connections
from gateway.broker.kept_table import KeptTable
from gateway.broker.openings import Openings
from gateway.broker.policies import open_policies
from gateway.log.names import event_number, policy_table, server_table, writer_of
from store.api import TableEntry
from store.errors import CorruptSegment
from tests.unit.gateway.log.log_rig import NAMES, LogRig

A_LIMIT = b'{"name": 3}'
DAMAGED = [b"{", b"[]", b"7", b"null", A_LIMIT, b"\xff\xfe", b'{"a"' + b"[" * 9]


@pytest.fixture
def rig(tmp_path: Path) -> LogRig:
    return LogRig(tmp_path)


def put(rig: LogRig, table: str, key: bytes, value: bytes) -> None:
    rig.run(KeptTable(rig.store, table).load())
    rig.do(rig.store.update_table, table, [TableEntry(key, value)])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (key, value)
        for key in (b"uanna", b"panna\0/", b"l/")
        for value in DAMAGED
        if (key, value) != (b"l/", A_LIMIT)
    ],
)
def test_a_damaged_user_permission_or_limit_is_told_in_one_line(
    rig: LogRig, key: bytes, value: bytes
) -> None:
    put(rig, server_table("access"), key, value)

    with pytest.raises(CorruptSegment, match=r"the entry b'.*' of the table '.*' is damaged"):
        rig.run(open_access(rig.store, Connections()))


@pytest.mark.parametrize("value", DAMAGED)
def test_a_damaged_policy_is_told_in_one_line(rig: LogRig, value: bytes) -> None:
    put(rig, policy_table("/"), b"p", value)

    with pytest.raises(CorruptSegment, match=r"the entry b'p' of the table '.*' is damaged"):
        rig.run(open_policies(rig.store, "/"))


def openings_of(rig: LogRig, streams: list[tuple[str, int]]) -> Openings:
    openings = Openings(rig.store)
    rig.run(openings.begin())
    if openings.is_damaged:
        rig.run(openings.note(streams))
        rig.run(openings.begun())
    return openings


BAD_COUNTS = [*DAMAGED, b'{"unclean": -1, "clean": true}', b'{"unclean": true, "clean": true}']


@pytest.mark.parametrize("value", BAD_COUNTS)
def test_a_damaged_count_of_openings_is_rebuilt_and_never_goes_back(
    rig: LogRig, caplog: pytest.LogCaptureFixture, value: bytes
) -> None:
    counted = 0
    for _ in range(5):  # each is an end without `end`
        counted = openings_of(rig, []).unclean_count
    born, epoch = 2, 1 + counted - 2
    segment = NAMES.data_segment
    rig.do(rig.store.create_segment, segment)
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, b"", event_number(7, epoch))
    put(rig, server_table("server"), b"openings", value)

    openings = openings_of(rig, [(segment, born)])

    assert openings.unclean_count == counted + 1
    assert openings.epoch_of(born) == epoch + 1
    assert "count of openings was damaged and is rebuilt count=5" in caplog.text
    assert openings_of(rig, []).unclean_count == counted + 2


def test_a_count_that_could_not_be_rebuilt_yet_is_left_as_it_is(rig: LogRig) -> None:
    put(rig, server_table("server"), b"openings", b"{")
    rig.run(Openings(rig.store).begin())

    again = Openings(rig.store)
    rig.run(again.begin())

    assert again.is_damaged
