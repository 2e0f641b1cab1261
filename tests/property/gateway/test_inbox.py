"""However the bytes arrive, the frames are the same."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.server.connections.inbox import ConnectionInbox

SHARED_BYTES = 48
LIMIT = 400


def frames_of(data: bytes, pieces: list[int], pauses: list[bool]) -> list[bytes]:
    """Feed the inbox in pieces as a connection does, pausing before some frames."""
    inbox = ConnectionInbox(bytearray(SHARED_BYTES))
    found: list[bytes] = []
    sizes = iter(pieces)
    stops = iter(pauses)

    def handle(buffer: bytearray, position: int, end: int) -> bool:
        """Take the whole frames; True if a pause left some."""
        is_paused, frame_bytes = False, 0
        while end - position >= 4:
            frame_end = position + 4 + int.from_bytes(buffer[position : position + 4])
            if frame_end > end:
                frame_bytes = frame_end - position
                break
            is_paused = next(stops, False)
            if is_paused:
                break
            found.append(bytes(buffer[position + 4 : frame_end]))
            position = frame_end
        inbox.keep(buffer, position, end, frame_bytes)
        return is_paused

    position = 0
    while position < len(data):
        place = inbox.place()
        assert len(place) > 0
        size = min(next(sizes, len(data)), len(place), len(data) - position)
        place[:size] = data[position : position + size]
        del place  # a view keeps its buffer from growing
        position += size
        buffer, end = inbox.received(size)
        is_paused = handle(buffer, 0, end)
        while is_paused:
            is_paused = handle(*inbox.take_kept())
    return found


@given(
    frames=st.lists(st.binary(max_size=20) | st.integers(0, LIMIT).map(bytes), max_size=10),
    tail=st.integers(0, 300),
    pieces=st.lists(st.integers(1, 100), max_size=60),
    pauses=st.lists(st.booleans(), max_size=12),
)
def test_any_split_of_the_bytes_gives_the_same_frames(
    frames: list[bytes], tail: int, pieces: list[int], pauses: list[bool]
) -> None:
    data = b"".join(len(frame).to_bytes(4) + frame for frame in frames)
    unfinished = (LIMIT.to_bytes(4) + bytes(LIMIT))[:tail]

    assert frames_of(data + unfinished, pieces, pauses) == frames
    assert frames_of(data + unfinished, [1] * 10_000, []) == frames
