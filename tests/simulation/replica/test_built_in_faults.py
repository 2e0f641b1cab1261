"""The simulation of a cluster finds each fault that is built in on purpose."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from store.replica.files import ReplicatedFiles
from store.replica.follower import Follower
from store.replica.log import NOTHING, Entry, Outcome, Unstored
from store.replica.message import Link, Message
from store.replica.operations import Write
from tests.simulation.replica.cluster import simulate
from tests.simulation.replica.oracle import Wrong
from tests.simulation.replica.shared_log import Connection, Sent, SharedLog

SEEDS: Final = range(20)
"""One of these finds it."""


def confirm_before_the_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    """A sync of a file does not wait for the log."""
    patch.setattr(ReplicatedFiles, "sync", lambda _files, _path: None)


def ignore_the_condition(patch: pytest.MonkeyPatch) -> None:
    """The log takes each message, whatever the last one is."""
    append = SharedLog.append

    def append_anyway(shared: SharedLog, data: bytes, _after: int) -> Outcome:
        last = shared.memory.last()
        return append(shared, data, NOTHING if last is None else last.position)

    patch.setattr(SharedLog, "append", append_anyway)


def ignore_gaps(patch: pytest.MonkeyPatch) -> None:
    """A follower takes a later message than the next one."""
    take: Callable[[Follower, Entry], int] = getattr(Follower, "_take")  # noqa: B009  # as it is named

    def take_any(follower: Follower, entry: Entry) -> int:
        message, place = Message.unpack(entry.data), follower.copy.place
        if message.number > place.link.number + 1:
            link = Link(message.number - 1, message.term, message.before)
            follower.copy.place = replace(place, link=link)
        return take(follower, entry)

    patch.setattr(Follower, "_take", take_any)


def keep_the_own_tail(patch: pytest.MonkeyPatch) -> None:
    """The active member's own files have what is written before the log has it."""
    change = ReplicatedFiles.change

    def change_at_once(files: ReplicatedFiles, node: Any, kind: Any, *values: Any) -> None:  # noqa: ANN401  # a private class
        change(files, node, kind, *values)
        if kind is Write and node.local is not None:
            position, data = values
            node.local.write_at(data, position)

    patch.setattr(ReplicatedFiles, "change", change_at_once)


def believe_the_position_of_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """An answer is read for its position alone, which is 0 where it is an error."""
    taken = Connection.taken

    def believed(connection: Connection, sent: Sent) -> Outcome:
        outcome = taken(connection, sent)
        return 0 if outcome is Unstored.OVERTAKEN else outcome

    patch.setattr(Connection, "taken", believed)


FAULTS: Final = (
    confirm_before_the_acknowledgement,
    ignore_the_condition,
    ignore_gaps,
    keep_the_own_tail,
    believe_the_position_of_a_refusal,
)


@pytest.mark.parametrize("build_in", FAULTS, ids=lambda build_in: build_in.__name__)
def test_a_fault_is_found_by_one_of_a_few_seeds(
    monkeypatch: pytest.MonkeyPatch, build_in: Callable[[pytest.MonkeyPatch], None]
) -> None:
    build_in(monkeypatch)
    with pytest.raises(Wrong):
        run_all()


def test_without_a_fault_none_of_these_seeds_finds_one() -> None:
    run_all()


def run_all() -> None:
    """Run seeds up to the first that finds something."""
    for seed in SEEDS:
        simulate(seed)
