import numpy as np
import pytest

from hutch.client.errors import BadAnswer
from pyspark_hutch.encoding.frames import PublishFrame
from pyspark_hutch.sink.outlet import ConfirmedFrames, Outlet


def frame(entries: int, records: int, size: int = 10) -> PublishFrame:
    return PublishFrame(bytes(size), np.arange(entries, dtype=np.uint64), records)


def outlet(*frames: PublishFrame) -> Outlet:
    made = Outlet("s", "", 300)
    made.unconfirmed.extend(frames)
    return made


def test_the_number_gives_publisher_id_and_connection() -> None:
    found = [(made.publisher_id, made.slot) for made in (Outlet("s", "", n) for n in (0, 255, 256))]

    assert found == [(0, 0), (255, 0), (0, 1)]


def test_a_frame_is_stored_when_its_last_entry_is_confirmed() -> None:
    waiting = outlet(frame(3, 30, size=100), frame(2, 2, size=7), frame(1, 1))

    assert waiting.confirm(2) == ConfirmedFrames(0, 0, 0)
    assert waiting.confirm(1) == ConfirmedFrames(1, 100, 30)
    assert waiting.confirm(3) == ConfirmedFrames(2, 17, 3)
    assert not waiting.unconfirmed


def test_a_confirm_may_reach_into_the_next_frame() -> None:
    waiting = outlet(frame(3, 3), frame(2, 2))

    assert waiting.confirm(4).frames == 1
    assert waiting.confirm(1).frames == 1


def test_more_confirms_than_entries_are_an_error_that_names_the_stream() -> None:
    with pytest.raises(BadAnswer, match=r"^stream 's': more was confirmed than was published$"):
        outlet(frame(3, 3)).confirm(4)
