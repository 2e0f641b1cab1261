"""Marks of units: they outlive chunks and references, and are missed where damage took one."""

import pytest

from hutch.formats.chunk import pack_trailer
from tests.unit.gateway.log.conftest import MakeRig
from tests.unit.gateway.log.log_rig import GENERATION, NAMES, LogRig, change_on_disk, put
from tests.unit.gateway.log.unit_rig import append, blank, reopened

pytestmark = pytest.mark.usefixtures("kind")


def test_the_mark_is_that_of_the_last_unit(rig: LogRig) -> None:
    log = rig.create()
    assert (log.mark, log.sequences.is_mark_known) == (0, True)
    append(rig, log, [blank(b"a")], 3)
    append(rig, log, [blank(b"b")], 17)

    assert log.mark == 17
    with pytest.raises(AssertionError):
        append(rig, log, [blank(b"c")], 17)
    assert reopened(rig, log).mark == 17


def test_a_mark_is_no_publishers_id(rig: LogRig) -> None:
    log = rig.create()

    append(rig, log, [blank(b"a")], 3)

    for each in (log, rig.open()):
        assert each.last_publishing_id(b"") is None
        assert each.sequences.last(b"") is None
        assert each.sequences.all() == {}
        assert len(each.sequences) == 0


def test_a_mark_is_not_forgotten_with_references(make_rig: MakeRig) -> None:
    rig = make_rig(references_max=2)
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    for number in range(5):
        put(log, [b"x"], reference=b"p%d" % number)
    rig.settle(log)
    rig.save(log)

    assert rig.open().mark == 3
    assert rig.open().sequences.all() == {b"p3": 1, b"p4": 1}


def test_a_mark_outlives_its_chunk(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    rig.save(log)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, log.committed_length)
    log.truncated(log.committed_length, log.committed_next_offset)

    again = rig.open()

    assert (again.mark, again.sequences.is_mark_known, again.is_empty) == (3, True, True)
    assert append(rig, again, [blank(b"b")], 4) == (1, 2)


def test_a_mark_may_be_lost_with_its_trailer_until_the_next_unit(rig: LogRig) -> None:
    rig.saves_snapshots = False
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    rig.commit(log, b"b")
    content = rig.content()
    change_on_disk(rig, content, (content.index(pack_trailer({b"": 3})) + 9, 4))

    again = rig.open()
    assert (again.mark, again.sequences.is_mark_known) == (0, False)
    append(rig, again, [blank(b"c")], 4)

    for each in (again, rig.open()):
        assert (each.mark, each.sequences.is_mark_known) == (4, True)


def test_damage_behind_a_mark_may_have_taken_another(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    rig.save(log)
    append(rig, log, [blank(b"b")], 4)
    chunk = rig.content()[log.last_chunk_position :]
    change_on_disk(rig, chunk, (chunk.index(pack_trailer({b"": 4})) + 9, 5))

    again = rig.open()

    assert (again.mark, again.sequences.is_mark_known) == (3, False)
    rig.commit(again, b"c")
    rig.save(again)
    again = rig.open()
    assert (again.mark, again.sequences.is_mark_known) == (3, False)


def test_damage_of_a_units_data_does_not_take_its_mark(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a" * 50)], 3)
    rig.commit(log, b"b")
    content = rig.content()
    change_on_disk(rig, content, (content.index(b"aaaa"), 7))

    again = rig.open()

    assert (again.mark, again.sequences.is_mark_known) == (3, True)


def test_without_the_snapshot_of_removed_chunks_the_mark_is_not_known(rig: LogRig) -> None:
    log = rig.create()
    append(rig, log, [blank(b"a")], 3)
    rig.commit(log, b"b")
    rig.save(log)
    rig.do(rig.store.truncate_segment, NAMES.data_segment, log.last_chunk_position)
    rig.run(rig.tracking.snapshots.replace(GENERATION, None))

    again = rig.open()

    assert (again.mark, again.sequences.is_mark_known) == (0, False)
