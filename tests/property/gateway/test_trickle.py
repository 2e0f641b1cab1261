"""Checklist 26: a frame in the smallest pieces costs what its bytes cost, however large it is."""

import time

import pytest

from gateway.stream.session.inbox import Inbox

MIB = 1 << 20
SHARED_BYTES = MIB
CPU_S_MAX = 4.0
"""Generous: a MiB of single bytes are a million calls; copying the frame for each takes minutes."""


def cpu_s_of(size: int) -> float:
    """Receive one frame a byte at a time, as a connection does that waits for its end."""
    inbox = Inbox(bytearray(SHARED_BYTES))
    frame = size.to_bytes(4) + bytes(size)
    before = time.process_time()
    for byte in frame:
        place = inbox.place()
        place[0] = byte
        del place  # a view keeps its buffer from growing
        buffer, end = inbox.received(1)
        if end == len(frame):
            assert buffer[:end] == frame
            return time.process_time() - before
        inbox.keep(buffer, 0, end, MIB)
    raise AssertionError("the frame never came whole")


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [100_000, SHARED_BYTES // 2 - 4, SHARED_BYTES // 2, MIB])
def test_a_frame_that_comes_a_byte_at_a_time_costs_linear_time(size: int) -> None:
    assert cpu_s_of(size) < CPU_S_MAX * size / MIB + 0.5
