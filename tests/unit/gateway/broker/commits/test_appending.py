import pytest

from gateway.broker.commits import appending
from gateway.broker.commits.commit_order import CommitPart
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.streams.staging_limits import StagingRoom
from tests.unit.gateway.broker.commits.staging_rig import StagingRig


def test_a_mark_that_damage_took_is_told_and_the_next_commit_brings_another(
    rig: StagingRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.commit(rig.staged("a", b"1"))
    rig.broker.log("a").sequences.lose()

    rig.commit(rig.staged("a", b"2", batch=1), batch=1)
    assert [line for line in caplog.messages if "damage took the last mark" in line] == [
        (
            "damage took the last mark, so a commit may be there already and is appended"
            " stream=a virtual_host=/ number=2"
        )
    ]
    caplog.clear()
    rig.commit(rig.staged("a", b"3", batch=2), batch=2)
    assert not caplog.messages
    assert rig.content("a") == [b"1", b"2", b"3"]


def test_parts_enter_many_streams_within_the_room_that_there_is(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [f"s{number}" for number in range(10)]
    for stream in streams:
        rig.run(rig.broker.streams.create(stream, {}))
    staged = [rig.staged(stream, b"x" * 100) for stream in streams]
    sizes = {stage.size_bytes for stage in rig.commits.stages}
    rig.commits.stages.usage.append_room = StagingRoom(2 * max(sizes))
    append, inside, most = appending._append, 0, 0

    async def counted(ports: CommitsPorts, part: CommitPart) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await append(ports, part)
        inside -= 1

    monkeypatch.setattr(appending, "_append", counted)
    rig.commit(*staged)

    assert most == 2
    assert [rig.content(stream) for stream in streams] == [[b"x" * 100]] * 10
