import pytest

from gateway.broker.commits import entering, sinks
from gateway.broker.errors import PreconditionFailed
from store.errors import DiskFull
from tests.unit.gateway.broker.commits.staging_rig import USER, StagingRig, anything


@pytest.mark.parametrize("is_clean", [None, True, False])
def test_a_commit_without_a_sink_that_comes_again_with_its_stages_is_a_repetition(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, *, is_clean: bool | None
) -> None:
    empty, first = rig.staged("a", sink=""), rig.staged("a", b"x", sink="")
    if is_clean is not None:  # its parts enter after the start

        async def nothing(*_: object) -> None:
            raise DiskFull("no")

        with monkeypatch.context() as patch:
            patch.setattr(entering, "_append", nothing)
            assert rig.commit(empty, first, sink="").waiting == ("a",)
        rig.restart(is_clean=is_clean)
    else:
        rig.commit(empty, first, sink="")
    rig.settle()

    again = rig.commit(empty, first, sink="")

    assert (again.number, again.is_repeat) == (1, True)
    assert rig.content("a") == [b"x"]
    coroutine = rig.commits.commit("other", "", 0, [first], anything)
    assert "is unknown" in rig.refused(PreconditionFailed, coroutine)


def test_so_many_stages_of_commits_without_a_sink_are_remembered(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "LAST_STAGES_MAX", 2)
    numbers = [rig.staged("a", b"x", sink="") for _ in range(3)]
    for number in numbers:
        rig.commit(number, sink="")

    assert rig.commit(numbers[1], sink="").is_repeat
    coroutine = rig.commits.commit(USER, "", 0, [numbers[0]], anything)
    assert "is unknown" in rig.refused(PreconditionFailed, coroutine)
