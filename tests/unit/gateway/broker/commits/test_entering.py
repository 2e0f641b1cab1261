import pytest

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
