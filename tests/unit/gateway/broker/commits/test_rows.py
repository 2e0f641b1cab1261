import struct

import pytest

from gateway.broker.commits.rows import (
    HeadRow,
    PartRow,
    SinkRow,
    StageRow,
    chunk_row_bytes,
    head_key,
    numbers_of,
    pack_number,
    part_key,
    sink_key,
    sink_of,
    stage_key,
    unpack_number,
)

ODD = "a\udcffb é"
"""A name with a byte that is no UTF-8."""


def test_a_stage_comes_back_with_its_bytes() -> None:
    row = StageRow(
        user=ODD, sink=ODD, batch=2**63 - 1, stream=ODD, generation=7, is_closed=True, used_ms=5
    )

    assert StageRow.unpack(row.pack(b"chunks")) == (row, b"chunks")


def test_sinks_and_heads_come_back() -> None:
    sink = SinkRow(batch=4, number=9, at_ms=10, user=ODD)
    head = HeadRow(user=ODD, sink=ODD, batch=4, records=5, size_bytes=6)

    assert SinkRow.unpack(sink.pack()) == sink
    assert HeadRow.unpack(head.pack()) == head


@pytest.mark.parametrize("stages", [(), (1,), (3, 2**64 - 1, 1)])
def test_a_part_comes_back_with_its_stages_in_order(stages: tuple[int, ...]) -> None:
    row = PartRow(ODD, stages)

    assert PartRow.unpack(row.pack()) == (row, b"")


def test_a_part_comes_back_with_its_chunk() -> None:
    row = PartRow(ODD, chunk_bytes=3)

    packed = row.pack(b"abc")

    assert PartRow.unpack(packed) == (row, b"abc")
    assert chunk_row_bytes(ODD, 3) == len(part_key(1, 2)) + len(packed)


def test_a_part_of_another_kind_or_size_is_refused() -> None:
    packed = PartRow("s", (1,)).pack()

    with pytest.raises(ValueError, match="kind 2"):
        PartRow.unpack(b"\2" + packed[1:])
    with pytest.raises(ValueError, match="inside a number"):
        PartRow.unpack(packed[:-1])


def test_numbers_and_sinks_are_in_the_keys() -> None:
    assert numbers_of(stage_key(5)) == (5,)
    assert numbers_of(head_key(6)) == (6,)
    assert numbers_of(part_key(6, 7)) == (6, 7)
    assert sink_of(sink_key(ODD)) == ODD


def test_the_last_number_has_eight_bytes() -> None:
    assert unpack_number(pack_number(2**64 - 1)) == 2**64 - 1
    with pytest.raises(struct.error):
        unpack_number(b"1234567")
