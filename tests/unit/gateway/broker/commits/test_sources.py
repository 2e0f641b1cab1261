import pytest

from gateway.broker.commits import sources, stage_filling
from gateway.broker.commits.sources import StageLost, StagesSource, whole_chunks
from gateway.pending import start
from tests.unit.gateway.broker.commits.staging_rig import StagingRig


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
