"""Drawn sequences: valid, with a model that counts, and never what would wreck a real broker."""

from hypothesis import given, settings

from compat.differential import frames as f
from compat.differential.script import Script
from compat.differential.sequences import sequences
from compat.differential.world import FULL_CREDIT, World

DELETE_SUPER = (0x1E).to_bytes(2)


@settings(max_examples=50, deadline=None)
@given(sequences(60))
def test_no_sequence_harms_a_broker(script: Script) -> None:
    for step in script.steps:
        body = step.data[4:]
        assert b"\n" not in body[10:40] or body[:2] not in (b"\0\x0d", b"\0\x1d")
        if body[:2] == DELETE_SUPER:
            assert int.from_bytes(body[8:10]) > 0


@settings(max_examples=50, deadline=None)
@given(sequences(60))
def test_a_sequence_compares_offsets_or_stores_some(script: Script) -> None:
    commands = {step.data[4:6] for step in script.steps if step.data}
    stores, looks = b"\0\x0a" in commands, b"\0\x1c" in commands
    assert not (stores and looks)
    assert script.has_free_offsets or not stores


def test_readers_get_what_comes_once_and_only_with_credit() -> None:
    world = World("AB")
    world.create("s")
    world.declare("A", 1, "s", "")
    world.subscribe("A", 1, "s", 0, FULL_CREDIT)
    world.subscribe("B", 1, "s", 0, 0)

    assert world.publish("A", 1, {1: 3})
    assert world.delivered() == {"A": 3}
    world.peers["B"].readers[1].credit = FULL_CREDIT
    assert world.delivered() == {"A": 0, "B": 3}


def test_duplicates_are_confirmed_and_not_stored() -> None:
    world = World("A")
    world.create("s")
    world.declare("A", 1, "s", "ref")

    world.publish("A", 1, {5: 1})
    world.publish("A", 1, {4: 1, 5: 1, 6: 1})

    assert world.streams["s"].entries == [(0, 1), (1, 1)]
    assert world.publish("A", 2, {7: 1}) is False


def test_only_who_uses_a_stream_is_told_of_its_end() -> None:
    world = World("ABC")
    world.create_super("x", ["x-0", "x-1"])
    world.declare("A", 1, "x-0", "")
    world.subscribe("A", 1, "x-1", 0, 0)
    world.watch("B", "x-0")
    world.subscribe("C", 1, "x-0", 0, 0)
    world.unsubscribe("C", 1)

    assert world.delete_super("x") == {"A": 2, "B": 1}
    assert not world.streams
    assert not world.peers["A"].publishers


def test_the_frames_of_a_super_stream_without_a_name_cannot_be_built() -> None:
    try:
        f.delete_super("")
    except AssertionError:
        return
    raise RuntimeError("it was built")
