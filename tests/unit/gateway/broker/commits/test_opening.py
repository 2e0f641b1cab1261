import pytest

from gateway.broker.commits import opening
from gateway.broker.commits.opening import open_commits
from gateway.broker.commits.rows import HeadRow, PartRow, head_key, part_key
from gateway.log import names
from store.api import TableEntry
from store.errors import CorruptSegment
from tests.unit.gateway.broker.commits.staging_rig import SINK, USER, StagingRig


def _write(rig: StagingRig, *rows: tuple[bytes, bytes]) -> None:
    store = rig.broker.store_rig
    entries = [TableEntry(key, value) for key, value in rows]
    store.do(store.store.update_table, names.commits_table("/"), entries)


@pytest.mark.parametrize("key", [b"n", b"sink", b"t12345678", b"h12345678", b"p1234567812345678"])
def test_a_damaged_row_is_named(rig: StagingRig, key: bytes) -> None:
    _write(rig, (key, b"{"))

    with pytest.raises(CorruptSegment, match="is damaged"):
        rig.run(open_commits(rig.commits.ports))


def test_a_row_of_a_later_version_is_refused(rig: StagingRig) -> None:
    _write(rig, (b"x", b""))

    with pytest.raises(CorruptSegment, match=r"the entry b'x' of the table .* is unknown"):
        rig.run(open_commits(rig.commits.ports))


def test_more_rows_than_a_page_has_are_all_found(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_PAGE_ROWS", 2)
    numbers = [rig.staged("a", b"%d" % number) for number in range(5)]

    rig.restart()
    rig.commit(*numbers)

    assert rig.content("a") == [b"0", b"1", b"2", b"3", b"4"]


def test_a_commit_under_way_is_finished_before_the_first_client_comes(rig: StagingRig) -> None:
    generations = {name: rig.broker.stream(name).entry.generation for name in "ab"}
    first, second = rig.staged("a", b"1"), rig.staged("b", b"2")
    head = HeadRow(user=USER, sink=SINK, batch=0, records=2, size_bytes=0)
    _write(
        rig,
        (head_key(1), head.pack()),
        (part_key(1, generations["a"]), PartRow("a", (first,)).pack()),
        (part_key(1, generations["b"]), PartRow("b", (second,)).pack()),
    )

    rig.restart(is_clean=False)

    assert (rig.content("a"), rig.content("b")) == ([b"1"], [b"2"])
    rig.settle()
    assert rig.rows() == {}


def test_a_stage_whose_row_is_lost_loses_its_part_alone(
    rig: StagingRig, caplog: pytest.LogCaptureFixture
) -> None:
    generations = {name: rig.broker.stream(name).entry.generation for name in "ab"}
    second = rig.staged("b", b"2")
    head = HeadRow(user=USER, sink=SINK, batch=0, records=2, size_bytes=0)
    _write(
        rig,
        (head_key(1), head.pack()),
        (part_key(1, generations["a"]), PartRow("a", (5,)).pack()),
        (part_key(1, generations["b"]), PartRow("b", (second,)).pack()),
    )

    rig.restart(is_clean=False)

    assert (rig.content("a"), rig.content("b")) == ([], [b"2"])
    assert "part of a commit is lost stream=a" in caplog.text
