"""States of groups, replayed: what the Java client wrote and said, each change, and any bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.pravega.controller.readers import packed
from gateway.pravega.controller.readers import state as module
from gateway.pravega.controller.readers.packed import Framed, UnreadableValue
from gateway.pravega.controller.readers.state import Agreed, Replay
from gateway.pravega.names import place_of
from tests.group_states import (
    CANCEL,
    LEFT_OUT,
    ONE,
    TWO,
    Offsets,
    Scene,
    acquire,
    add,
    begin,
    begun,
    change,
    changes,
    clear,
    compacted,
    complete,
    framed,
    reach,
    recorded,
    release,
    remove,
    whole,
)
from tests.unit.gateway.pravega.controller.readers.test_packed import end

SCENES, DATA = recorded()
THREE = "scope/one/2.#epoch.1"
MANY = [f"scope/one/{number}.#epoch.1" for number in range(2, 5)]
STREAM = "scope", "one"


def replayed(data: bytes) -> Agreed:
    """Return what the bytes of a segment agree."""
    framed, replay = Framed(), Replay()
    for event in framed.fed(data):
        end(replay.take(event))
    return end(replay.agreed())


def after(*some: bytes, start: bytes | None = None) -> Agreed:
    """Return what is agreed after changes of a state with two free segments."""
    first = begun({ONE: 10, TWO: 20}) if start is None else start
    return replayed(framed(whole(first), *map(changes, some)))


def cuts(given: Offsets) -> dict[tuple[str, str], dict[int, int]]:
    found: dict[tuple[str, str], dict[int, int]] = {}
    for segment, offset in given.items():
        place = place_of(segment)
        assert place is not None
        found.setdefault(place[:2], {})[place[2]] = offset
    return found


# What the client wrote and said


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: f"{scene.name}-{scene.group}")
def test_the_members_and_places_are_those_that_the_client_said(scene: Scene) -> None:
    for first in {scene.start, max(scene.start, scene.mark or 0)}:
        agreed = replayed(DATA[scene.group][first : scene.length])

        assert list(agreed.members) == scene.members
        assert agreed.reached == cuts(scene.checkpoint or scene.positions)
        assert agreed.ends == cuts(scene.ends)


def test_the_recorded_scenes_have_changes_of_nearly_every_kind() -> None:
    kinds = set()
    for data in DATA.values():
        for event in Framed().fed(data):
            if event[3] == 1:
                kinds.add(event[5])
                continue
            place = 4
            while place < len(event):
                kinds.add(event[place + 5])
                place += 4 + int.from_bytes(event[place : place + 4])
    assert kinds >= {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12}


# Changes


def test_readers_come_and_go_with_the_segments_that_they_have_taken() -> None:
    taken = add("a"), add("b"), acquire("a", ONE), acquire("b", TWO)

    assert after(*taken).members == ("a", "b")
    left = after(*taken, remove("a", {ONE: 15}), remove("b", {}), remove("never", {}))

    assert left.members == ()
    assert left.reached == {STREAM: {0: 15, 1: 20}}


def test_a_segment_that_is_released_goes_on_where_it_is_released() -> None:
    taken = add("a"), acquire("a", ONE), release("a", ONE, 17), add("b"), acquire("b", ONE)

    assert after(*taken).reached == {STREAM: {0: 17, 1: 20}}


def test_a_segment_follows_when_all_before_it_are_read_off() -> None:
    taken = add("a"), acquire("a", ONE), acquire("a", TWO)
    first = complete("a", ONE, {THREE: (0, 1)})

    assert after(*taken, first).reached == {STREAM: {1: 20}}
    assert after(*taken, first, complete("a", TWO, {THREE: (0, 1)})).reached == {
        STREAM: {1 << 32 | 2: 0}
    }


def test_a_checkpoint_is_where_all_readers_were() -> None:
    taken = add("a"), acquire("a", ONE), begin("mark")
    done = reach("mark", "a", {ONE: 12})

    assert after(*taken).reached == {STREAM: {0: 10, 1: 20}}
    marked = after(*taken, done, clear("mark"), acquire("a", TWO))
    assert marked.reached == {STREAM: {0: 12, 1: 20}}


def test_a_silent_checkpoint_changes_no_place() -> None:
    silent = begin("x_SILENT_"), reach("x_SILENT_", "a", {ONE: 12})

    assert after(add("a"), acquire("a", ONE), *silent).reached == {STREAM: {0: 10, 1: 20}}


def test_checkpoints_that_are_cancelled_are_not_reached() -> None:
    taken = add("a"), acquire("a", ONE), begin("mark"), CANCEL

    assert after(*taken, reach("mark", "a", {ONE: 12})).reached == {STREAM: {0: 12, 1: 20}}
    assert after(*taken, remove("a", {ONE: 13})).reached == {STREAM: {0: 13, 1: 20}}


def test_changes_that_tell_nothing_of_members_and_places_are_left_out() -> None:
    assert after(*LEFT_OUT) == after()


def test_a_new_state_takes_the_place_of_what_was() -> None:
    reset = changes(begun({TWO: 3}, ends={TWO: 9}))
    data = framed(whole(begun({ONE: 10})), changes(add("a"), add("b")), reset)

    assert replayed(data) == Agreed((), {STREAM: {1: 3}}, {STREAM: {1: 9}})


def test_a_state_that_was_written_down_whole_goes_on() -> None:
    state = compacted(
        {"a": {ONE: 4}, "b": {}},
        {TWO: 5},
        future={THREE: (0,)},
        checkpoints={"mark": (["a", "b"], {TWO: 5})},
    )

    assert after(start=state) == Agreed(("a", "b"), {STREAM: {0: 4, 1: 5}}, {})
    assert after(complete("a", ONE, {}), start=state).reached == {STREAM: {1: 5, 1 << 32 | 2: 0}}
    done = reach("mark", "a", {ONE: 6}), remove("b", {})
    assert after(*done, start=state).reached == {STREAM: {0: 6, 1: 5}}
    assert after(start=compacted({}, {TWO: 5}, last={ONE: 9})).reached == {STREAM: {0: 9}}


# What no client writes

WRONG = {
    "a reader that is online comes": (add("a"), add("a")),
    "a reader is not online": (acquire("a", ONE),),
    "a segment is not where it is taken from": (add("a"), acquire("a", THREE)),
    "the kind 77": (change(77),),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_change_that_cannot_be_ends_in_an_error(words: str) -> None:
    with pytest.raises(UnreadableValue, match=words):
        after(*WRONG[words])


@pytest.mark.parametrize(
    "some",
    [
        (release("a", ONE, 0),),
        (add("a"), release("a", ONE, 0)),
        (add("a"), complete("a", ONE, {})),
        (begin("mark"), reach("mark", "a", {})),
        (add("a"), add("b"), begin("mark"), remove("b", {}), reach("x", "b", {})),
    ],
)
def test_a_change_of_what_is_not_there_ends_in_an_error(some: Sequence[bytes]) -> None:
    with pytest.raises(UnreadableValue):
        after(*some)


def test_nothing_comes_before_the_first_state() -> None:
    with pytest.raises(UnreadableValue, match="before the first state"):
        replayed(framed(changes(add("a"))))
    with pytest.raises(UnreadableValue, match="no whole state"):
        replayed(framed(changes()))
    with pytest.raises(UnreadableValue, match="the kind 3"):
        replayed(framed(b"\0\0\0\3"))
    with pytest.raises(UnreadableValue, match="the kind 2"):
        replayed(framed(whole(begun({ONE: 1})), whole(add("a"))))


def test_a_segment_has_the_name_of_one() -> None:
    with pytest.raises(UnreadableValue, match="no name"):
        after(start=begun({"scope/one": 1}))


def test_members_and_segments_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMBERS_MAX", 2)
    assert len(after(add("a"), add("b")).members) == 2
    with pytest.raises(UnreadableValue, match="more than 2 readers"):
        after(add("a"), add("b"), add("c"))

    monkeypatch.setattr(module, "ENTRIES_MAX", 2)
    taken = add("a"), acquire("a", ONE)
    assert len(after(*taken, complete("a", ONE, {THREE: (0,)})).reached[STREAM]) == 2
    for numbers in ((0,), (0, 9)):  # free, or waiting for another one
        with pytest.raises(UnreadableValue, match="more than 2 segments"):
            after(*taken, complete("a", ONE, dict.fromkeys(MANY, numbers)))


@pytest.mark.parametrize(("letters", "is_read"), [(255, True), (256, False)])
def test_the_name_of_a_reader_has_a_largest_size(letters: int, *, is_read: bool) -> None:
    if is_read:
        assert after(add("x" * letters)).members == ("x" * letters,)
    else:
        with pytest.raises(UnreadableValue, match="letters"):
            after(add("x" * letters))


def test_the_names_of_all_readers_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LETTERS_MAX", 4)

    assert after(add("ab"), add("cd")).members == ("ab", "cd")
    with pytest.raises(UnreadableValue, match="more than 4 letters"):
        after(add("ab"), add("cde"))


def test_events_without_changes_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "WORK_MAX", 20)

    with pytest.raises(UnreadableValue, match="more than 20 entries"):
        replayed(framed(whole(begun({ONE: 1})), *[changes()] * 20))


# Any bytes


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw recorded bytes of which some are others, or are missing or there twice."""
    data = bytearray(draw(st.sampled_from(sorted(DATA.values()))))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 40))
        data[place : place + size] = draw(st.binary(max_size=40) | st.just(data[place // 2 :][:40]))
    return bytes(data)


CHANGE = st.one_of(
    st.builds(add, st.sampled_from("ab")),
    st.builds(remove, st.sampled_from("ab"), st.just({ONE: 1})),
    st.builds(acquire, st.sampled_from("ab"), st.sampled_from([ONE, TWO, THREE])),
    st.builds(release, st.sampled_from("ab"), st.sampled_from([ONE, TWO]), st.just(1)),
    st.builds(complete, st.sampled_from("ab"), st.sampled_from([ONE, TWO]), st.just({THREE: (0,)})),
    st.builds(begin, st.sampled_from(["m", "n", "_SILENT_"])),
    st.builds(reach, st.sampled_from("mn"), st.sampled_from("ab"), st.just({ONE: 5})),
    st.builds(clear, st.sampled_from("mn")),
    st.just(CANCEL),
    st.binary(max_size=30).map(lambda data: b"\7" + data),
)


@example(b"")
@given(
    st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda data: framed(b"\0\0\0\1" + data))
    | damaged()
    | st.lists(CHANGE, max_size=12).map(
        lambda some: framed(whole(begun({ONE: 1, TWO: 2})), *map(changes, some))
    )
)
def test_any_bytes_end_in_members_and_places_or_in_one_error(data: bytes) -> None:
    try:
        agreed = replayed(data)
    except UnreadableValue:
        return
    assert list(agreed.members) == sorted(set(agreed.members))
    for cut in (*agreed.reached.values(), *agreed.ends.values()):
        assert cut
