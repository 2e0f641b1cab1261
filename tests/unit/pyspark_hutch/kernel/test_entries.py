"""Each rule of the loops over entries by an example: compiled, interpreted, and by numpy."""

from types import ModuleType

import numpy as np
import pytest

from pyspark_hutch.decoding import bodies, vectors
from pyspark_hutch.decoding.bodies import (
    BEYOND,
    DATA,
    DONE,
    EXTENTS,
    FULL,
    NOTHING,
    ODD,
    RAW,
    SUB_BATCH,
    VALUE,
)
from tests.chunks import SubBatch
from tests.property.pyspark_hutch.chunk_rig import (
    WAYS,
    data,
    data_of,
    listed,
    mapped,
    section,
    sized,
    text,
    way_of,
)

LARGE = 1 << 20


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> ModuleType:
    return way_of(request.param)


@pytest.fixture(params=[40, 1], ids=["few", "many"], autouse=True)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy takes a few messages one by one; with 1 all are many."""
    monkeypatch.setattr(vectors, "_FEW", request.param)


class Taken:
    """Take records, in calls for as long as the loops say that they are done with a part."""

    def __init__(
        self,
        way: ModuleType,
        source: bytes,
        count: int,
        budget: int = LARGE,
        is_amqp: bool = True,  # noqa: FBT001, FBT002
        step: int = EXTENTS,
    ) -> None:
        bodies = np.full(len(source) + 8, 0xA5, np.uint8)
        ends, kinds = np.zeros(count + 2, np.int32), np.full(count + 1, 99, np.uint8)
        self.extents: list[list[int]] = []
        self.position = row = used = 0
        self.reason = DONE
        while self.reason == DONE and row < count:
            extents = np.full(EXTENTS * (count - row if step else 1), -1, np.int64)
            before, first = row, self.position
            self.reason, self.position, row, used = way.take_records(
                source,
                self.position,
                len(source),
                count - row,
                budget,
                is_amqp,
                bodies,
                used,
                True,  # noqa: FBT003  # as the kernel takes it
                ends,
                kinds,
                row,
                extents,
                step,
            )
            budget -= self.position - first - 4 * (row - before)
            if step:
                self.extents += extents.reshape(-1, EXTENTS)[: row - before, :12].tolist()
        self.kinds = kinds[:row].tolist()
        pairs = zip([0, *ends[1 : row + 1].tolist()], ends[1 : row + 1].tolist(), strict=False)
        self.bodies = [bodies[start:end].tobytes() for start, end in pairs]
        assert (bodies[used:] == 0xA5).all(), "wrote behind the bodies"
        assert kinds[row + 1 :].tolist() in ([], [99] * (count - row)), "wrote behind the kinds"


def test_reasons_and_kinds_have_the_same_numbers_everywhere() -> None:
    kernel = way_of("interpreted")

    names = [name for name in vars(kernel) if name.isupper() and not name.startswith("_")]

    assert len(names) == 10
    assert [getattr(kernel, name) for name in names] == [getattr(bodies, name) for name in names]


def test_records_of_one_size_are_taken(way: ModuleType) -> None:
    messages = [data(b"%03d" % number) for number in range(100)]

    taken = Taken(way, data_of(messages), 100)

    assert taken.reason == DONE
    assert taken.bodies == [b"%03d" % number for number in range(100)]
    assert taken.kinds == [DATA] * 100
    assert taken.extents == [[0] * 12] * 100


@pytest.mark.parametrize("size", [0, 1, 255, 256, 3000])
def test_the_short_and_the_long_form_of_data_are_taken(way: ModuleType, size: int) -> None:
    bodies = [bytes([number]) * size for number in range(9)]

    taken = Taken(way, data_of([data(body) for body in bodies]), 9)

    assert taken.bodies == bodies
    assert taken.kinds == [DATA] * 9


def test_records_of_other_sizes_are_taken(way: ModuleType) -> None:
    bodies = [b"x" * (number * 7 % 300) for number in range(100)]

    taken = Taken(way, data_of([data(body) for body in bodies]), 100)

    assert taken.bodies == bodies


def test_a_run_ends_where_the_size_or_the_form_changes(way: ModuleType) -> None:
    messages = [data(b"abc")] * 50 + [b"12345678"] * 50 + [data(b"")] * 50

    taken = Taken(way, data_of(messages), len(messages))

    assert taken.bodies == [b"abc"] * 50 + [b"12345678"] * 50 + [b""] * 50
    assert taken.kinds == [DATA] * 50 + [RAW] * 50 + [DATA] * 50


@pytest.mark.parametrize("size", [3, 6, 255, 256, 300])
@pytest.mark.parametrize("difference", [-1, 1])
def test_data_that_does_not_have_its_size_is_raw(
    way: ModuleType, size: int, difference: int
) -> None:
    true = data(bytes(size))
    place = 4 if size < 256 else 7
    lie = bytearray(true)
    lie[place] = (lie[place] + difference) % 256
    messages = [*[true] * 50, bytes(lie), *[true] * 50, bytes(lie), true]

    taken = Taken(way, data_of(messages), len(messages))

    assert taken.kinds == [*[DATA] * 50, RAW, *[DATA] * 50, RAW, DATA]
    assert taken.bodies[49:52] == [bytes(size), lie, bytes(size)]


def test_messages_are_left_as_they_are_unless_they_may_be_amqp(way: ModuleType) -> None:
    messages = [data(b"abc"), b"", b"x"]

    taken = Taken(way, data_of(messages), 3, is_amqp=False)

    assert taken.bodies == messages
    assert taken.kinds == [RAW] * 3


@pytest.mark.parametrize("count", [0, 1, 60])
def test_it_stops_at_a_sub_batch(way: ModuleType, count: int) -> None:
    source = data_of([data(b"abc")] * count + [SubBatch.of([b"a"])])

    taken = Taken(way, source, count + 1)

    assert (taken.reason, taken.position) == (SUB_BATCH, 12 * count)
    assert way.skip_records(source, 0, len(source), count + 1) == (SUB_BATCH, 12 * count, count)


@pytest.mark.parametrize("cut", [1, 5, 9, 11])
@pytest.mark.parametrize("count", [0, 60])
def test_it_stops_at_an_entry_that_is_not_all_there(way: ModuleType, count: int, cut: int) -> None:
    source = data_of([data(b"abc")] * (count + 1))[: 12 * count + cut]

    taken = Taken(way, source, count + 1)

    assert (taken.reason, taken.position) == (BEYOND, 12 * count)
    assert way.skip_records(source, 0, len(source), count + 1) == (BEYOND, 12 * count, count)


@pytest.mark.parametrize(("budget", "count"), [(479, 59), (480, 60), (487, 60), (488, 61)])
def test_it_stops_at_a_message_beyond_the_budget(way: ModuleType, budget: int, count: int) -> None:
    taken = Taken(way, data_of([data(b"abc")] * 70), 70, budget)

    assert (taken.reason, len(taken.bodies), taken.position) == (FULL, count, 12 * count)


def test_skipping_passes_over_records(way: ModuleType) -> None:
    source = data_of([data(b"x" * number) for number in range(20)])

    assert way.skip_records(source, 0, len(source), 3) == (DONE, 3 * 9 + 3, 3)
    assert way.skip_records(source, 9, len(source), 0) == (DONE, 9, 0)


HEADER, PROPERTIES = section(0x70, listed(b"\x41")), section(0x73, listed(text("id")))
DELIVERY, MESSAGE = section(0x71, mapped(a=b"\x41")), section(0x72, mapped(b=b"\x42"))
APPLICATION, FOOTER = section(0x74, mapped(c=b"\x43")), section(0x78, mapped(d=b"\x44"))


def test_sections_are_found_and_the_body_among_them(way: ModuleType) -> None:
    message = HEADER + DELIVERY + MESSAGE + PROPERTIES + APPLICATION + data(b"body") + FOOTER
    messages = [b"raw", message, data(b"x"), section(0x73, listed(), is_long=True) + data(b"y")]
    source = data_of(messages)

    taken = Taken(way, source, 4)

    assert taken.bodies == [b"raw", b"body", b"x", b"y"]
    assert taken.kinds == [RAW, DATA, DATA, DATA]
    assert taken.extents[0] == taken.extents[2] == [0] * 12
    pairs = zip(taken.extents[1][::2], taken.extents[1][1::2], strict=True)
    found = [source[start:end] for start, end in pairs]
    sections = (HEADER, DELIVERY, MESSAGE, PROPERTIES, APPLICATION, FOOTER)
    assert found == [each[3:] for each in sections]
    start, end = taken.extents[3][6:8]
    assert source[start:end] == listed()


@pytest.mark.parametrize("code", [0xA0, 0xA1, 0xA3])
@pytest.mark.parametrize("size", [3, 300])
def test_a_value_of_bytes_is_a_body(way: ModuleType, code: int, size: int) -> None:
    taken = Taken(way, data_of([section(0x77, sized(code, b"v" * size))]), 1)

    assert (taken.kinds, taken.bodies) == ([VALUE], [b"v" * size])


def test_sections_without_a_body_are_no_raw_bytes(way: ModuleType) -> None:
    taken = Taken(way, data_of([PROPERTIES]), 1)

    assert (taken.kinds, taken.bodies) == ([NOTHING], [b""])


ODD_ONES = {
    "two data sections": data(b"a") + data(b"b"),
    "a number": section(0x77, b"\x54\x05"),
    "a null": section(0x77, b"\x40"),
    "a described value": section(0x77, b"\0\x53\x01\xa1\x01x"),
    "a list": section(0x77, listed(b"\x41")),
    "a sequence": section(0x76, listed(b"\x41")),
    "two sequences": section(0x76, listed()) * 2,
}


@pytest.mark.parametrize("message", ODD_ONES.values(), ids=ODD_ONES)
@pytest.mark.parametrize("before", [0, 60])
def test_it_stops_at_a_body_that_must_be_put_together(
    way: ModuleType, message: bytes, before: int
) -> None:
    taken = Taken(way, data_of([data(b"abc")] * before + [message, data(b"z")]), before + 2)

    assert (taken.reason, taken.position) == (ODD, 12 * before)
    assert taken.bodies == [b"abc"] * before


RAW_ONES = {
    "a byte": b"\0",
    "no sections": b"hello, world",
    "half a section": data(b"abc")[:-1],
    "more than a section": data(b"abc") + b"x",
    "a code that there is not": section(0x6F, listed()),
    "a code beyond the last": section(0x79, listed()),
    "a large code": b"\0\x80" + (0x175).to_bytes(8) + sized(0xA0, b"x"),
    "a large code cut short": b"\0\x80" + bytes(7) + b"\x75",
    "a code of another form": b"\0\x70\0\0\0\x75" + sized(0xA0, b"x"),
    "a symbol for a code": b"\0" + sized(0xA3, b"amqp:data:binary") + sized(0xA0, b"x"),
    "data that is a text": section(0x75, text("x")),
    "a header that is a map": section(0x70, mapped()),
    "properties that are null": section(0x73, b"\x40"),
    "annotations that are a list": section(0x72, listed()),
    "a sequence that is a map": section(0x76, mapped()),
    "two headers": HEADER * 2,
    "two values": section(0x77, text("x")) * 2,
    "data and a value": data(b"x") + section(0x77, text("x")),
    "a value and data": section(0x77, text("x")) + data(b"x"),
    "a value that is not there": b"\0\x53\x77",
    "a width that there is not": section(0x77, b"\x30\0"),
    "a text without a size": section(0x77, b"\xa1"),
    "a long text without a size": section(0x77, b"\xb1\0\0\0"),
    "a text longer than all": section(0x77, b"\xb1\xff\xff\xff\xff"),
    "a number cut short": section(0x77, b"\x80\0\0\0"),
    "a descriptor alone": section(0x77, b"\0\x53\x01"),
    "a descriptor of nothing": section(0x77, b"\0"),
    "a descriptor that is described": section(0x77, b"\0\0\x53\x01\xa1\0\xa1\0"),
    "a descriptor cut short": section(0x77, b"\0\x80\0\0"),
}


@pytest.mark.parametrize("message", RAW_ONES.values(), ids=RAW_ONES)
@pytest.mark.parametrize("before", [b"", APPLICATION], ids=["alone", "behind a section"])
def test_what_is_not_amqp_is_raw(way: ModuleType, message: bytes, before: bytes) -> None:
    whole = before + message

    taken = Taken(way, data_of([whole, data(b"z")]), 2)

    assert taken.bodies == [whole, b"z"]
    assert taken.kinds == [RAW, DATA]
    assert taken.extents == [[0] * 12] * 2


def test_an_empty_message_is_raw(way: ModuleType) -> None:
    taken = Taken(way, data_of([b"", data(b"z"), b""]), 3)

    assert (taken.kinds, taken.bodies) == ([RAW, DATA, RAW], [b"", b"z", b""])


def test_extents_of_one_record_are_room_enough_where_none_are_asked_for(way: ModuleType) -> None:
    messages = [APPLICATION + data(b"%d" % number) for number in range(60)]

    taken = Taken(way, data_of(messages), 60, step=0)

    assert taken.bodies == [b"%d" % number for number in range(60)]


def test_bodies_are_left_where_they_are_if_nothing_asks_for_them(way: ModuleType) -> None:
    source = data_of([data(b"abc")] * 50 + [b"x", APPLICATION + data(b"y")])
    kinds = np.zeros(52, np.uint8)
    row = position = used = 0
    nowhere, ends, room = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(EXTENTS, np.int64)
    is_amqp, has_bodies = True, False
    while row < 52:
        what = (source, position, len(source), 52 - row, LARGE, is_amqp)
        reason, position, row, used = way.take_records(
            *what, nowhere, 0, has_bodies, ends, kinds, row, room, 0
        )
        assert reason == DONE

    assert (position, used) == (len(source), 0)
    assert kinds.tolist() == [DATA] * 50 + [RAW, DATA]
