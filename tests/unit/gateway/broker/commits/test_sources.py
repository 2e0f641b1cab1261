from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.broker.commits import sources, stage_filling
from gateway.broker.commits.sources import StageLost, StagesSource, whole_chunks
from gateway.broker.commits.stage import Stage
from gateway.broker.errors import InternalError, PreconditionFailed, StreamDoesNotExist
from gateway.log import names
from gateway.log.names import writer_of
from gateway.pending import Pending, start
from store.api import Done
from store.errors import StoreError
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.broker.commits.staging_rig import USER, StagingRig
from tests.unit.gateway.log.log_rig import encode


def _source(rig: StagingRig, *numbers: int) -> StagesSource:
    found = [stage for stage in map(rig.commits.stages.find, numbers) if stage is not None]
    return StagesSource(rig.commits.ports, rig.commits.stages.data_of, found)


def _read(rig: StagingRig, source: StagesSource) -> list[bytes]:
    """Read a source in as many pieces as it takes; each must be whole chunks."""
    pieces: list[bytes] = []
    position = 0
    while position < source.size:
        pieces.append(bytes(rig.run(source.read(position))))
        assert pieces[-1]
        assert whole_chunks(pieces[-1]) == len(pieces[-1])
        position += len(pieces[-1])
    return pieces


@pytest.mark.parametrize("inline_bytes", [10, 150, 100_000])
@pytest.mark.parametrize("read_bytes", [70, 200, 100_000])
def test_all_chunks_come_in_order_whatever_is_read_at_once(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, inline_bytes: int, read_bytes: int
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", inline_bytes)
    monkeypatch.setattr(sources, "READ_BYTES", read_bytes)
    first, empty, second = rig.open(), rig.open(), rig.open()
    for number, size in ((first, 20), (second, 100)):
        for sequence in range(3):
            rig.add(number, [b"%d" % sequence * size], sequence)
    for number in (first, empty, second):
        rig.close(number)

    pieces = _read(rig, _source(rig, first, empty, second))

    assert b"".join(pieces).count(b"0" * 20) >= 1
    bodies = [b"%d" % sequence * size for size in (20, 100) for sequence in range(3)]
    joined, position = b"".join(pieces), 0
    for body in bodies:
        position = joined.index(body, position) + len(body)
    assert len(pieces) == 1 if read_bytes > 1_000 else len(pieces) >= 2


def test_each_piece_is_read_in_a_turn_of_its_own(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "READ_BYTES", 1)
    source = _source(rig, rig.staged("a", b"1"), rig.staged("a", b"2"))
    first = start(source.read(0))
    assert first.is_settled

    second = start(source.read(len(first.result())))

    assert not second.is_settled
    rig.broker.loop.run_until(lambda: second.is_settled)
    assert [b"1" in first.result(), b"2" in second.result()] == [True, True]


def test_small_stages_are_read_together(rig: StagingRig) -> None:
    source = _source(rig, *(rig.staged("a", b"x") for _ in range(5)))

    assert len(_read(rig, source)) == 1


def test_a_stage_that_is_shorter_than_it_was_is_lost(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = rig.staged("a", b"x")
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    large = rig.staged("a", b"x" * 50)

    for number in (small, large):
        stage = rig.commits.stages.find(number)
        assert stage is not None
        stage.size_bytes += 1
        with pytest.raises(StageLost, match=f"stage {number} of stream 'a' has lost bytes"):
            rig.run(_source(rig, number).read(0))


def test_a_chunk_whose_head_says_more_than_the_stage_has_is_lost(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    number = rig.staged("a", b"\xff" * 50)
    stage = rig.commits.stages.find(number)
    assert stage is not None

    with pytest.raises(StageLost, match=f"stage {number} of stream 'a' has lost bytes"):
        rig.run(_source(rig, number).read(stage.size_bytes - 40))


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", 0),
        (b"\0\0\0\0\0\0\0", 0),
        (b"\0\0\0\0\0\0\0\1", 0),
        (b"\0\0\0\0\0\0\0\1x", 9),
        (b"\0\0\0\0\0\0\0\1x\0\0", 9),
    ],
)
def test_a_chunk_that_is_cut_off_is_not_whole(data: bytes, size: int) -> None:
    assert whole_chunks(data) == size


def _left_open(rig: StagingRig, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return a stage of one frame that was open when the server was killed."""
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    number = rig.open()
    rig.add(number, [b"x" * 50])
    rig.broker.loop.run_until(lambda: _stored(rig, number) == 1)
    rig.restart(is_clean=False)
    return number


def _stage(rig: StagingRig, number: int) -> Stage:
    stage = rig.commits.stages.find(number)
    assert stage is not None
    return stage


def _stored(rig: StagingRig, number: int) -> int:
    return _stage(rig, number).stored


def _size(rig: StagingRig, number: int) -> int:
    return _stage(rig, number).size_bytes


def _adding(
    rig: StagingRig, number: int, *, sequence: int = 0
) -> Coroutine[Pending[Any], None, int]:
    return rig.commits.filling.add(USER, number, sequence, 1, 1, encode(b"x"))


@pytest.mark.parametrize("is_clean", [True, False])
def test_stages_outlive_a_restart_as_far_as_they_are_stored(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, *, is_clean: bool
) -> None:
    small, in_memory = rig.staged("a", b"1"), rig.open()
    rig.add(in_memory, [b"x"])
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    large, still_open = rig.staged("a", b"2" * 50), rig.open()
    rig.add(still_open, [b"3" * 50, b"4"])
    rig.add(still_open, [b"5"], 1)
    rig.broker.loop.run_until(lambda: _stored(rig, still_open) == 2)
    used = rig.commits.stages.bytes_of(USER) - _size(rig, in_memory)

    rig.restart(is_clean=is_clean)

    assert rig.rows() == {b"t": 3}
    assert rig.commits.stages.bytes_of(USER) == rig.commits.stages.usage.of(USER) == used
    assert "unknown" in rig.refused(PreconditionFailed, _adding(rig, in_memory, sequence=1))
    gap = rig.refused(PreconditionFailed, _adding(rig, still_open, sequence=3))
    assert gap == f"stage {still_open}: sequence 3 came instead of 2"
    assert rig.run(_adding(rig, still_open, sequence=1)) == 2
    rig.add(still_open, [b"6"], 2)
    rig.close(still_open)
    assert _stage(rig, still_open).records == 4
    rig.commit(small, large, still_open)
    assert rig.content("a") == [b"1", b"2" * 50, b"3" * 50, b"4", b"5", b"6"]
    rig.settle()
    assert rig.rows() == {b"n": 1, b"s": 1}
    assert not rig.has_segment(still_open)


def test_a_resumed_stage_can_be_closed_at_once_and_its_frames_come_again(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = _left_open(rig, monkeypatch)

    rig.close(number)
    assert _stage(rig, number).records == 1
    rig.restart()

    assert rig.run(_adding(rig, number)) == 1
    rig.commit(number)
    assert rig.content("a") == [b"x" * 50]


def test_a_stage_that_was_left_open_expires_after_its_last_frame(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = _left_open(rig, monkeypatch)
    stage = _stage(rig, number)
    rig.broker.now_ms = stage.used_ms + 86_400_000
    rig.run(rig.commits.look())
    assert rig.commits.stages.find(number) is not None

    rig.broker.now_ms += 1
    rig.run(rig.commits.look())

    assert rig.commits.stages.find(number) is None
    assert (rig.rows(), rig.has_segment(number)) == ({}, False)


def test_a_stage_that_was_left_open_goes_with_its_batch(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _left_open(rig, monkeypatch)

    rig.commit(rig.staged("a", b"1"))
    rig.settle()

    assert (rig.rows(), rig.has_segment(left)) == ({b"n": 1, b"s": 1}, False)
    assert rig.commits.stages.usage.of(USER) == 0


def test_a_stage_whose_row_has_no_segment_yet_is_removed_at_the_start(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_filling, "INLINE_BYTES_MAX", 10)
    wrap_operation(monkeypatch, rig.broker.store_rig.store, "create_segment", lambda *_, **__: None)
    number = rig.open()
    rig.add(number, [b"x" * 50])
    rig.broker.loop.run_until(lambda: rig.rows() == {b"t": 1})

    rig.restart(is_clean=False)

    assert rig.rows() == {}
    assert rig.commits.stages.find(number) is None


def test_an_open_stage_that_has_lost_bytes_is_unknown(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    number = _left_open(rig, monkeypatch)
    segment = names.stage_segment("/", number)
    store = rig.broker.store_rig
    writer = store.do(store.store.open_writer, segment, writer_of(segment))
    store.do(writer.append, b"no chunk", 2)
    rig.restart(is_clean=False)

    line = rig.refused(PreconditionFailed, _adding(rig, number, sequence=1))

    assert line.startswith(f"stage {number} is unknown: ")
    assert "open stage is lost" in caplog.text
    assert (rig.rows(), rig.has_segment(number)) == ({}, False)


def test_an_open_stage_that_cannot_be_read_now_is_counted_later(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = _left_open(rig, monkeypatch)
    fails = [True]

    def read(real: Callable[..., None], *rest: object, done: Done[Any], **more: object) -> None:
        if fails[0]:
            rig.broker.loop.call_soon(done, StoreError("no"))
        else:
            real(*rest, done=done, **more)

    wrap_operation(monkeypatch, rig.broker.store_rig.store, "read", read)
    coroutine = _adding(rig, number, sequence=1)
    assert "is not stored: no" in rig.refused(InternalError, coroutine)
    fails[0] = False

    rig.close(number)

    assert _stage(rig, number).records == 1


def test_an_open_stage_of_a_stream_that_was_deleted_is_refused(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = _left_open(rig, monkeypatch)
    rig.run(rig.broker.streams.delete("a", lambda _: None))

    assert rig.refused(StreamDoesNotExist, rig.commits.filling.close(USER, number)) == "a"
