"""Following: when a member is due to take over, and what it does at which time."""

import pytest

from store.replica.beats import Beat
from store.replica.following import SYNC_S, Following, NameTaken
from store.replica.member import Member
from tests.simulation.disk import Disk
from tests.unit.store.replica.scripted import ScriptedLog
from tests.unit.store.replica.test_member import member_on, write

BEATS = 3


class Rig:
    """Two members on one log, by one clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = ScriptedLog()

    def member(self, name: str) -> Following:
        return self.following(member_on(Disk(), self.log, name))

    def following(self, member: Member) -> Following:
        return Following(
            member,
            self.log,
            beat_s=1.0,
            takeover_beats=BEATS,
            clock=lambda: self.now,
            address=f"{member.name}:5552",
        )

    def pass_(self, *followings: Following, seconds: int = 1) -> None:
        """Let time pass, with a step of each in each second."""
        for _ in range(seconds):
            self.now += 1
            for each in followings:
                each.step()


def test_the_first_member_is_due_at_once_and_sends_no_beat_before() -> None:
    rig = Rig()
    one = rig.member("one")

    assert one.step() == 0

    assert one.is_due
    assert rig.log.beats() == {}


def test_a_member_is_due_after_its_beats_without_a_sign_of_the_active_one() -> None:
    rig = Rig()
    write(member_on(Disk(), rig.log, "one"))
    two = rig.member("two")

    rig.pass_(two, seconds=BEATS)
    assert not two.is_due
    rig.pass_(two, seconds=2)

    assert two.is_due


def test_a_sign_of_the_active_member_begins_the_count_anew() -> None:
    rig = Rig()
    active = member_on(Disk(), rig.log, "one")
    write(active)
    two = rig.member("two")

    for number in range(BEATS * 3):
        rig.pass_(two)
        if number % 2 == 0:
            rig.log.beat("one", Beat(is_active=True, term=1, number=1).pack())
        assert not two.is_due


def test_beats_of_members_that_follow_keep_no_active_one_alive() -> None:
    rig = Rig()
    write(member_on(Disk(), rig.log, "one"))
    two, three = rig.member("two"), rig.member("three")

    rig.pass_(two, three, seconds=BEATS + 3)

    assert two.is_due


def test_a_member_is_due_when_the_active_one_has_handed_over() -> None:
    rig = Rig()
    files = member_on(Disk(), rig.log, "one").take_over()
    assert files is not None
    two = rig.member("two")
    rig.pass_(two)
    assert not two.is_due

    files.shipping.hand_over()
    two.step()  # what it applies
    two.step()

    assert two.is_due


def test_a_member_shows_itself_to_the_others() -> None:
    rig = Rig()
    write(member_on(Disk(), rig.log, "one"))
    two, three = rig.member("two"), rig.member("three")

    rig.pass_(two, three)

    seen = {name: beat.address for name, (_, beat) in three.others().items()}
    assert seen == {"two": "two:5552"}
    assert [each.name for each in three.members.states()] == ["three", "two"]


def test_of_two_processes_by_one_name_the_one_that_follows_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    write(member_on(Disk(), rig.log, "two"))
    one = rig.member("one")
    beats = rig.log.beats

    def beats_behind_the_twins() -> dict[str, tuple[int, bytes]]:
        rig.log.beat("one", Beat(process="twin").pack())
        return beats()

    monkeypatch.setattr(rig.log, "beats", beats_behind_the_twins)

    rig.pass_(one)  # that might be an earlier process
    with pytest.raises(NameTaken, match=r"another process is member one .*cluster\.member"):
        rig.pass_(one)
    active = rig.member("one")
    for _ in range(3):
        active.beat(is_active=True)
    assert caplog.text.count("another process is member one") == 1


def test_an_earlier_process_of_the_same_name_is_none(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    write(member_on(Disk(), rig.log, "two"))
    rig.pass_(rig.member("one"), seconds=3)

    rig.pass_(rig.member("one"), seconds=3)

    assert "another process" not in caplog.text


def test_what_was_applied_is_synced_at_times() -> None:
    rig = Rig()
    files = member_on(Disk(), rig.log, "one").take_over()
    assert files is not None
    two = rig.member("two")
    two.step()
    before = two.copy.synced.position

    files.open("a", create=True).sync()
    two.step()
    assert two.copy.place.position > before
    assert two.copy.synced.position == before
    rig.pass_(two, seconds=int(SYNC_S))

    assert two.copy.synced.position == two.copy.place.position
