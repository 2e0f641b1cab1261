"""Tables of the broker whose entries are damaged: one clear line, or rebuilt."""

from pathlib import Path

import pytest

from gateway.broker.access.access import open_access
from gateway.broker.connections import Connections
from gateway.broker.kept_table import KeptTable
from gateway.broker.rules.policies import open_policies
from gateway.broker.streams.catalogue import StreamCatalogue
from gateway.broker.streams.openings import Openings
from gateway.broker.yielding import TurnBudget
from gateway.log.names import policy_table, server_table, tracking_key, writer_of
from hutch.formats.chunk import event_number
from store.api import TableEntry
from store.errors import CorruptSegment
from tests.unit.gateway.log.log_rig import NAMES, TABLE, LogRig

A_LIMIT = b'{"name": 3}'
DAMAGED = [b"{", b"[]", b"7", b"null", A_LIMIT, b"\xff\xfe", b'{"a"' + b"[" * 9]


@pytest.fixture
def rig(tmp_path: Path) -> LogRig:
    return LogRig(tmp_path)


def harmed(rig: LogRig, written: bytes) -> LogRig:
    """Flip a bit of what was written to a table, and open the store again."""
    rig.close()
    paths = [each for each in (rig.directory / "data").iterdir() if written in each.read_bytes()]
    for path in paths:
        content = bytearray(path.read_bytes())
        content[content.rindex(written)] ^= 1
        path.write_bytes(content)
    assert len(paths) == 1
    return LogRig(rig.directory)


async def _load(table: KeptTable | StreamCatalogue) -> None:
    await table.load()


@pytest.mark.parametrize("kind", [KeptTable, StreamCatalogue])
def test_a_table_that_has_lost_entries_is_refused_with_the_way_out(
    rig: LogRig, kind: type[KeptTable | StreamCatalogue]
) -> None:
    put(rig, "t", b"amq.one", b"one")
    put(rig, "t", b"amq.two", b"two")
    rig = harmed(rig, b"amq.two")

    with pytest.raises(CorruptSegment) as refused:
        rig.run(_load(kind(rig.store, "t")))

    assert str(refused.value) == "table 't' is damaged: run `hutch store check --data DIR --repair`"
    rig.close()


def test_offsets_go_on_without_the_lost_one(rig: LogRig, caplog: pytest.LogCaptureFixture) -> None:
    for reference, offset in ((b"one", 41), (b"two", 42)):
        rig.tracking.store_offset(7, reference, offset)
    rig.run(rig.tracking.settled())
    rig = harmed(rig, tracking_key(7, b"two"))

    assert rig.run(rig.tracking.query_offset(7, b"one")) == 41
    assert rig.run(rig.tracking.query_offset(7, b"two")) is None
    assert f"older values of their keys may be back segment={TABLE}" in caplog.text
    rig.tracking.store_offset(7, b"two", 43)
    assert rig.run(rig.tracking.query_offset(7, b"two")) == 43
    rig.close()


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
        rig.run(open_policies(rig.store, "/", TurnBudget(rig.loop.call_soon)))


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


@pytest.mark.parametrize("starts", [1, 4])
def test_a_lost_count_of_openings_is_rebuilt_once(
    rig: LogRig, caplog: pytest.LogCaptureFixture, starts: int
) -> None:
    # Of some, the last is lost and the one before comes back.
    counted = [openings_of(rig, []).unclean_count for _ in range(starts)][-1]
    segment = NAMES.data_segment
    rig.do(rig.store.create_segment, segment)
    writer = rig.do(rig.store.open_writer, segment, writer_of(segment))
    rig.do(writer.append, b"", event_number(7, 1 + counted))
    rig = harmed(rig, b'{"unclean"')

    rebuilt = openings_of(rig, [(segment, 0)])

    assert rebuilt.unclean_count > counted
    assert "count of openings was damaged and is rebuilt" in caplog.text
    table = server_table("server")
    rig.loop.run_until(lambda: not rig.do(rig.store.table_info, table)[0].is_damaged)
    rig.close()
    caplog.clear()
    rig = LogRig(rig.directory)
    assert openings_of(rig, []).unclean_count == rebuilt.unclean_count + 1
    assert "damaged" not in caplog.text
    rig.close()


def test_a_count_that_could_not_be_rebuilt_yet_is_left_as_it_is(rig: LogRig) -> None:
    put(rig, server_table("server"), b"openings", b"{")
    rig.run(Openings(rig.store).begin())

    again = Openings(rig.store)
    rig.run(again.begin())

    assert again.is_damaged
