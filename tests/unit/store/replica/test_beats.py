"""Beats: their bytes, and when the active member is taken for gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.replica.beats import Beat, Silence

NUMBERS = st.integers(0, 2**64 - 1)


@given(st.builds(Beat, st.booleans(), NUMBERS, NUMBERS, NUMBERS))
def test_a_beat_comes_back_as_it_was_packed(beat: Beat) -> None:
    assert Beat.unpack(beat.pack()) == beat


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff",
        b'{"active": true, "term": 1, "number": 2}',
        b'{"active": true, "term": "x", "number": 2, "synced": 3}',
        b'{"active": true, "term": Infinity, "number": 2, "synced": 3}',
        b"[" * 100_000,
    ],
    ids=range(10),
)
def test_bytes_that_are_no_beat_say_nothing(data: bytes) -> None:
    assert Beat.unpack(data) == Beat()


def test_the_active_member_is_gone_after_so_many_beats_without_a_sign() -> None:
    silence = Silence(3)

    assert [silence.beat_stored("a sign") for _ in range(4)] == [False, False, False, True]


def test_a_sign_begins_the_count_anew() -> None:
    silence = Silence(2)
    for sign in (1, 1, 2, 2, 3):
        assert not silence.beat_stored(sign)

    assert silence.beats == 0
    assert [silence.beat_stored(3) for _ in range(2)] == [False, True]


def test_an_active_member_that_has_never_been_heard_of_is_gone_after_so_many_beats() -> None:
    silence = Silence(2)

    assert [silence.beat_stored(None) for _ in range(2)] == [False, True]
