from hutch.stream.offsets import (
    FIRST,
    LAST,
    NEXT,
    NONE,
    OffsetSpec,
    OffsetType,
    at_offset,
    at_timestamp,
)


def test_the_types_have_the_numbers_of_the_wire() -> None:
    assert [spec.type for spec in (NONE, FIRST, LAST, NEXT)] == [0, 1, 2, 3]
    assert at_offset(5) == OffsetSpec(OffsetType.OFFSET, 5)
    assert at_offset(5).type == 4
    assert at_timestamp(-5) == OffsetSpec(OffsetType.TIMESTAMP, -5)
    assert at_timestamp(-5).type == 5
