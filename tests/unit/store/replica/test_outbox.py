"""Operations that become a chain of messages."""

from store.replica.message import BEGINNING, HEAD_BYTES, Link, MessageKind
from store.replica.operations import Operation, Write, unpack
from store.replica.outbox import Outbox

CLUSTER = bytes(range(16))
SIZE = 4_096


def outbox(*times: int) -> Outbox:
    clock = iter(times or range(1_000))
    return Outbox(CLUSTER, BEGINNING, SIZE, lambda: next(clock))


def written(number: int, size: int) -> Write:
    return Write("data/1", number * size, bytes([number + 1]) * size)


def test_operations_go_out_in_their_order_in_messages_that_fit() -> None:
    box = outbox()
    operations = [written(number, 700) for number in range(20)]
    for each in operations:
        box.add(each)

    link, found = Link(0, 0), list[Operation]()
    while box:
        data, taken = box.take()
        link, message = link.after(data, CLUSTER)
        assert len(data) <= SIZE
        assert list(unpack(memoryview(message.body))) == taken
        assert box.link == link
        found += taken

    assert found == operations


def test_what_fills_a_message_is_known() -> None:
    box = outbox()
    while not box.has_whole:
        box.add(written(1, 100))
    box.take()
    assert not box.has_whole


def test_one_operation_may_be_half_a_message_and_is_never_split() -> None:
    box = outbox()
    box.add(written(1, box.data_bytes_max))
    data, [operation] = box.take()
    assert operation == written(1, box.data_bytes_max)
    assert HEAD_BYTES < len(data) <= SIZE


def test_time_never_falls() -> None:
    box = outbox(5, 3, 7)
    link, times = Link(0, 0), []
    for _ in range(3):
        link, message = link.after(box.message(MessageKind.OPERATIONS, b""), CLUSTER)
        times.append(message.at_ms)
    assert times == [5, 5, 7]
