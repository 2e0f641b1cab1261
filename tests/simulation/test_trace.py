"""The simulation's own parts: its histories are worth something, and its checks find faults."""

import dataclasses
import random
from collections import Counter

import pytest

from store.api import Durability
from store.errors import DiskFull, SegmentFailed, StoreError
from tests.conformance.harness import Loop, Rig
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Failure, Image, Sync
from tests.simulation.history import Expectation, Operation, SegmentState, observe
from tests.simulation.trace import ATTRIBUTES, NAMES, Trace


def _history(seed: int, count: int) -> tuple[Rig, Trace]:
    loop = Loop()
    rig = Rig(lambda loop: ModelStore(loop, Model()), loop)
    trace = Trace(rig, Disk(), Durability.DISK, random.Random(seed))
    trace.run(count)
    return rig, trace


def test_a_history_has_all_kinds_of_operations_and_most_succeed() -> None:
    _, trace = _history(1, 520)
    done = Counter(each.method for each in trace.operations if each.is_acknowledged)
    refused = Counter(
        type(each.result).__name__
        for each in trace.operations
        if isinstance(each.result, StoreError)
    )
    assert done["append"] > 120
    assert set(done) == {
        "append", "create_segment", "create_table", "delete_segment", "delete_table",
        "merge_segments", "open_writer", "remove_keys", "seal_segment", "truncate_segment",
        "update_attributes", "update_table",
    }  # fmt: skip
    assert {"WriterFenced", "KeyVersionMismatch", "AttributeMismatch", "LengthMismatch"} <= set(
        refused
    )
    assert sum(done.values()) > 250


@pytest.mark.parametrize("seed", range(5))
def test_the_timelines_end_in_what_is_there(seed: int) -> None:
    rig, trace = _history(seed, 200)
    seen = observe(rig, NAMES, ATTRIBUTES)
    trace.expectation().check(seen, cut=0, crash=Crash.KILL)
    assert sum(state is not None for state in seen.values()) > 3


def _changed(expectation: Expectation, seed: int) -> list[str]:
    """Give the complaints about a store that lost a little of something."""
    rig, _ = _history(seed, 300)
    seen = observe(rig, NAMES, ATTRIBUTES)
    complaints = []
    for name, state in seen.items():
        if state is None or not state.content:
            continue
        changes: list[dict[str, object]] = [
            {"content": state.content[:-1]},
            {"content": state.content[:-1] + b"?"},
            {"start": state.start + 1},
            {"attributes": {}},
            {"is_sealed": not state.is_sealed},
        ]
        for change in changes:
            changed = dataclasses.replace(state, **change)  # type: ignore[arg-type] # one field
            if changed == state:
                continue
            with pytest.raises(AssertionError, match="can not be") as raised:
                expectation.check(seen | {name: changed}, cut=0, crash=Crash.KILL)
            complaints.append(str(raised.value))
    return complaints


def test_the_check_finds_what_is_missing() -> None:
    _, trace = _history(3, 300)
    assert len(_changed(trace.expectation(), 3)) > 5


def test_what_found_no_space_may_have_happened_until_its_refusal_is_told_and_not_after() -> None:
    name = NAMES[0]

    def operation(method: str, result: object, answered_at: int) -> Operation:
        return Operation(
            index=answered_at,
            method=method,
            arguments=(name,),
            options={},
            names=(name,),
            durability=Durability.DISK,
            issued_at=answered_at - 4,
            answered_at=answered_at,
            result=result,
        )

    operations = [
        operation("create_segment", None, 4),
        operation("delete_segment", DiskFull("no space"), 8),
    ]
    expectation = Expectation(operations, [], {}, [name], is_strict=False)
    there = SegmentState(
        0, is_sealed=False, is_table=False, key_length=0, content=b"", attributes={}, entries={}
    )
    for cut in range(4, 12):
        expectation.check({name: there}, cut, Crash.KILL)
    for cut in range(4, 8):
        expectation.check({name: None}, cut, Crash.KILL)
    for cut in range(8, 12):
        with pytest.raises(AssertionError, match="can not be"):
            expectation.check({name: None}, cut, Crash.KILL)


def test_bytes_that_were_not_synced_may_be_lost_and_others_not() -> None:
    disk = Disk()
    disk.make_directory("d")
    disk.sync_directory("")
    file = disk.open("d/f", create=True)
    disk.sync_directory("d")
    file.write_at(b"a" * 1_024, 0)
    file.sync()
    file.write_at(b"b" * 1_024, 512)
    chance = random.Random(1)
    aftermath = Aftermath()
    for step in disk.record:
        aftermath.advance(step, chance)

    def left(crash: Crash) -> set[bytes]:
        images = [aftermath.after(crash, chance, None)[0] for _ in range(50)]
        return {image.contents[image.names["d/f"]] for image in images}

    a, b = b"a" * 512, b"b" * 512
    assert left(Crash.KILL) == left(Crash.KEPT) == {a + b + b}
    assert left(Crash.DROPPED) == {a + a}
    assert left(Crash.ZEROED) == {a + a + bytes(512)}
    assert {a + a, a + b} <= left(Crash.TORN)
    zero = bytes(512)
    assert left(Crash.REORDERED) == {a + a, a + b, a + a + zero, a + b + zero, a + a + b, a + b + b}


def test_names_last_only_once_their_directory_is_synced() -> None:
    disk = Disk(Image(frozenset({"d"})))
    disk.open("d/new", create=True)
    disk.rename("d/new", "d/newer")
    aftermath, chance = Aftermath(Image(frozenset({"d"}))), random.Random(1)
    for step in disk.record:
        aftermath.advance(step, chance)

    def left() -> set[tuple[str, ...]]:
        images = [aftermath.after(Crash.REORDERED, chance, None)[0] for _ in range(50)]
        return {tuple(image.names) for image in images}

    assert left() == {(), ("d/new",), ("d/newer",)}
    disk.sync_directory("d")
    aftermath.advance(disk.record[-1], chance)
    assert left() == {("d/newer",)}


def test_a_later_sync_does_not_bring_back_what_a_failed_one_lost() -> None:
    disk = Disk()
    file = disk.open("f", create=True)
    disk.sync_directory("")
    disk.failures.append(Failure(lambda step: isinstance(step, Sync)))
    file.write_at(b"lost", 0)
    with pytest.raises(SegmentFailed):
        file.sync()
    file.sync()
    assert file.read_at(10, 0) == b"lost"
    left = set()
    for seed in range(50):
        aftermath, chance = Aftermath(), random.Random(seed)
        for step in disk.record:
            aftermath.advance(step, chance)
        image, _ = aftermath.after(Crash.DROPPED, chance, None)
        left.add(image.contents[image.names["f"]])
        image, _ = aftermath.after(Crash.KILL, chance, None)
        assert image.contents[image.names["f"]] == b"lost"
    assert b"" in left
