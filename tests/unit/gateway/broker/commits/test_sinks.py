import pytest

from gateway.broker.access.model import User
from gateway.broker.commits import appending, sinks
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.errors import AccessRefused, PreconditionFailed
from store.errors import DiskFull, StoreError
from tests.unit.gateway.broker.commits.staging_rig import SINK, USER, StagingRig, anything


@pytest.mark.parametrize("is_clean", [None, True, False])
def test_a_commit_without_a_sink_that_comes_again_with_its_stages_is_a_repetition(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, *, is_clean: bool | None
) -> None:
    empty, first = rig.staged("a", sink=""), rig.staged("a", b"x", sink="")
    if is_clean is not None:  # its parts enter after the start

        async def nothing(*_: object) -> None:
            raise DiskFull("no")

        with monkeypatch.context() as patch:
            patch.setattr(appending, "_append", nothing)
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


# Batches without stages


@pytest.mark.parametrize("sink", [SINK, ""])
def test_a_batch_without_stages_leaves_nothing_where_there_is_no_sink(
    rig: StagingRig, sink: str
) -> None:
    for batch in (3, 3, 2**62):
        committed = rig.commit(sink=sink, batch=batch)
        assert (committed.number, committed.is_repeat) == (0, False)

    assert rig.rows() == {}
    assert rig.commits.state_of(USER, SINK) == (-1, 0)
    rig.run(rig.commits.commit("other", SINK, 0, [], anything))  # the name is free


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_a_batch_behind_a_first_one_without_stages_is_published_once(
    rig: StagingRig, batch: int
) -> None:
    rig.commit(batch=1)

    rows = [rig.commit(rig.staged("a", b"x", batch=batch), batch=batch) for _ in range(2)]

    assert [each.is_repeat for each in rows] == [False, True]
    assert rig.content("a") == [b"x"]
    assert rig.commits.state_of(USER, SINK) == (batch, 1)


def test_a_batch_without_stages_of_a_sink_that_is_there_counts(rig: StagingRig) -> None:
    rig.commit(rig.staged("a", b"x"))
    rig.commit(batch=1)
    rig.restart(is_clean=False)

    again = rig.commit(rig.staged("a", b"y", batch=1), batch=1)

    assert (again.number, again.is_repeat) == (2, True)
    assert rig.content("a") == [b"x"]


def test_stages_of_attempts_go_with_a_batch_without_stages(rig: StagingRig) -> None:
    tried, later = rig.staged("a", b"x"), rig.staged("a", b"y", batch=1)

    rig.commit()

    assert [stage.number for stage in rig.commits.stages] == [later]
    coroutine = rig.commits.commit(USER, SINK, 0, [tried], anything)
    assert "is unknown" in rig.refused(PreconditionFailed, coroutine)


# Bounds


def make_sink(rig: StagingRig, sink: str, user: str = USER, batch: int = 0) -> None:
    rig.commit(
        rig.staged("a", user=user, sink=sink, batch=batch), user=user, sink=sink, batch=batch
    )


def new_sink_refused(rig: StagingRig, sink: str, user: str = USER) -> str:
    number = rig.staged("a", b"x", user=user, sink=sink)
    return rig.refused(PreconditionFailed, rig.commits.commit(user, sink, 0, [number], anything))


def test_a_user_has_so_many_sinks_and_none_is_forgotten_to_make_room(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "USER_SINKS_MAX", 2)
    for sink in ("one", "two"):
        make_sink(rig, sink)

    assert new_sink_refused(rig, "more") == (
        "sink 'more' is new, and user 'guest' has 2 sinks in virtual host '/': "
        "`hutch ctl list_sinks` shows them, `hutch ctl forget_sink` makes room"
    )

    assert rig.content("a") == []
    assert rig.commits.state_of(USER, "one") == (0, 1)
    make_sink(rig, "one", batch=1)
    make_sink(rig, "more", user="other")
    rig.restart(is_clean=False)
    new_sink_refused(rig, "third")
    assert rig.run(rig.commits.sinks.forget("two"))
    make_sink(rig, "third")


def test_a_virtual_host_has_so_many_sinks(rig: StagingRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "SINKS_MAX", 1)
    make_sink(rig, SINK)

    assert new_sink_refused(rig, "more", user="other") == (
        "sink 'more' is new, and there are 1 sinks in virtual host '/': "
        "`hutch ctl list_sinks` shows them, `hutch ctl forget_sink` makes room"
    )
    make_sink(rig, SINK, batch=1)


# Sinks that go


def test_a_sink_is_forgotten_long_after_its_last_commit(
    rig: StagingRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    make_sink(rig, SINK, batch=5)
    rig.settle()
    expiry_ms = rig.commits.stages.usage.limits.sink_expiry_s * 1_000
    rig.broker.now_ms += expiry_ms
    rig.run(rig.commits.look())
    assert rig.commits.state_of(USER, SINK) == (5, 1)

    rig.broker.now_ms += 1
    rig.run(rig.commits.look())

    assert rig.commits.state_of(USER, SINK) == (-1, 0)
    assert "sink forgotten virtual_host=/ sink='query' user='guest' batch=5" in caplog.text
    assert rig.rows() == {b"n": 1}
    assert rig.commit(rig.staged("a", batch=5), batch=5).number == 2


def test_a_sink_that_is_forgotten_on_demand_is_any_users(rig: StagingRig) -> None:
    make_sink(rig, SINK, user="other", batch=2**62)
    with pytest.raises(AccessRefused, match="is of user 'other'"):
        rig.commit(rig.staged("a"))

    assert rig.run(rig.commits.sinks.forget(SINK))
    assert not rig.run(rig.commits.sinks.forget(SINK))

    rig.settle()
    assert rig.rows() == {b"n": 1, b"t": 1}
    make_sink(rig, SINK)
    rig.restart(is_clean=False)
    assert rig.commits.state_of(USER, SINK) == (0, 2)


def test_a_sink_that_the_store_keeps_is_not_forgotten(
    rig: StagingRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_sink(rig, SINK)
    rig.settle()
    with monkeypatch.context() as patch:
        patch.setattr(CommitsPorts, "remove", refuse)
        with pytest.raises(StoreError):
            rig.run(rig.commits.sinks.forget(SINK))
        rig.broker.now_ms += rig.commits.stages.usage.limits.sink_expiry_s * 1_000 + 1
        rig.run(rig.commits.look())

    assert "sinks not forgotten, tried again later virtual_host=/ sinks=1 error=no" in caplog.text
    assert rig.commits.state_of(USER, SINK) == (0, 1)
    rig.run(rig.commits.look())
    assert rig.commits.state_of(USER, SINK) == (-1, 0)


async def refuse(*_: object) -> None:
    raise StoreError("no")


# Users that go


@pytest.fixture
def app(rig: StagingRig) -> str:
    """A user with two sinks, and stages that are small, large and open."""
    rig.run(rig.broker.access.put_user(User("app", None)))
    for sink in ("one", "two"):
        make_sink(rig, sink, user="app", batch=7)
    rig.settle()
    rig.staged("a", b"x", user="app", batch=8)
    rig.staged("a", *[b"x" * 60_000] * 5, user="app", batch=8)
    rig.open(user="app", batch=8)
    return "app"


def test_stages_and_sinks_of_a_user_go_with_it(
    rig: StagingRig, app: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    make_sink(rig, "mine")
    mine = rig.staged("b", b"y", batch=9)
    rig.settle()
    (large,) = [stage.number for stage in rig.commits.stages if stage.has_segment]
    assert rig.has_segment(large)

    rig.run(rig.broker.access.delete_user(app))

    assert [stage.number for stage in rig.commits.stages] == [mine]
    assert [sink for sink, _ in rig.commits.sinks] == ["mine"]
    assert rig.rows() == {b"n": 1, b"s": 1, b"t": 1}
    assert not rig.has_segment(large)
    assert rig.commits.stages.usage.of(app) == 0
    assert "sink forgotten virtual_host=/ sink='two' user='app' batch=7" in caplog.text
    assert "stages of deleted users dropped virtual_host=/ stages=3 bytes=" in caplog.text
    rig.run(rig.broker.access.put_user(User(app, None)))
    assert rig.commits.state_of(app, "one") == (-1, 0)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_the_store_keeps_of_a_deleted_user_goes_later(
    rig: StagingRig,
    app: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_restarted: bool,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CommitsPorts, "remove", refuse)
        rig.run(rig.broker.access.delete_user(app))
    assert "sinks not forgotten, tried again later virtual_host=/ sinks=2" in caplog.text
    assert "stages not deleted, tried again later virtual_host=/ stages=2" in caplog.text
    assert rig.rows() == {b"n": 1, b"s": 2, b"t": 2}

    if is_restarted:
        rig.restart(is_clean=False)
    else:
        rig.run(rig.commits.look())
        rig.run(rig.broker.virtual_host.drop_strangers())

    assert rig.rows() == {b"n": 1}
    assert (len(rig.commits.sinks), len(rig.commits.stages)) == (0, 0)


def test_a_commit_of_a_user_that_is_deleted_meanwhile_goes_on_and_leaves_no_sink(
    rig: StagingRig, app: str
) -> None:
    number = rig.staged("a", b"mine", user=app, sink="late")
    committing = rig.start(rig.commits.commit(app, "late", 0, [number], anything))
    rig.broker.loop.run_until(lambda: bool(rig.commits.stages.find(number).commit))  # type: ignore[union-attr]  # it is there

    rig.run(rig.broker.access.delete_user(app))
    rig.broker.loop.run_until(lambda: committing.is_settled)
    rig.settle()

    assert not committing.result().is_repeat
    assert rig.content("a") == [b"mine"]
    assert rig.rows() == {b"n": 1}


def test_a_batch_without_stages_that_comes_too_late_makes_no_sink(
    rig: StagingRig, app: str
) -> None:
    deleting = rig.start(rig.broker.access.delete_user(app))
    late = rig.start(rig.commits.commit(app, "one", 9, [], anything))
    rig.broker.loop.run_until(lambda: deleting.is_settled and late.is_settled)
    rig.settle()

    assert rig.rows() == {b"n": 1}


def test_a_user_that_is_made_again_meanwhile_keeps_what_it_has(rig: StagingRig, app: str) -> None:
    deleting = rig.start(rig.broker.access.delete_user(app))
    making = rig.start(rig.broker.access.put_user(User(app, None)))
    rig.broker.loop.run_until(lambda: deleting.is_settled and making.is_settled)
    make_sink(rig, "one", user=app)

    rig.run(rig.broker.virtual_host.drop_strangers())
    rig.settle()

    assert [sink for sink, _ in rig.commits.sinks] == ["one"]
    assert rig.commits.state_of(app, "one")[0] == 0


def test_who_else_has_sinks_and_stages_is_not_asked_about_where_one_user_goes(
    rig: StagingRig, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sink(rig, "mine")
    mine = rig.staged("b", b"y", batch=9)
    has_user, asked = rig.broker.access.has_user, []

    def counted(name: str) -> bool:
        asked.append(name)
        return has_user(name)

    monkeypatch.setattr(rig.broker.virtual_host, "has_user", counted)

    rig.run(rig.broker.access.put_user(User("stranger", None)))
    rig.run(rig.broker.access.delete_user("stranger"))
    assert asked == []  # it has nothing here

    rig.run(rig.broker.access.delete_user(app))
    assert set(asked) == {app}

    rig.run(rig.broker.virtual_host.drop_strangers())
    assert set(asked) == {app, USER}
    assert [stage.number for stage in rig.commits.stages] == [mine]
