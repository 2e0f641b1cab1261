"""Stages and sinks go with the user that has them, whatever crash cuts its deletion."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gateway.broker.access.model import User
from gateway.log import names
from store.errors import NoSuchSegment
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image
from tests.simulation.staged import Filled, fill, open_broker, small_stages
from tests.simulation.world import SEED
from tests.unit.gateway.stream.link_rig import Broker

FIRST: Final = User("guest", None, ("first",))
"""The user that has stages and sinks, and is deleted."""
SECOND: Final = User("guest", None, ("second",))
"""The one of the same name that is made afterwards."""
SINKS: Final = {"one": 4, "two": 7}
"""With their last batches."""


@pytest.fixture(autouse=True)
def _small_stages() -> Iterator[None]:
    with small_stages():
        yield


class Deletion:
    """A user that commits and stages, is deleted, and made again.

    Attributes:
        disk: Records it.
        stages: The numbers of its stages, with whether they were closed.
        begun_at: The place in the record at which all of them were stored.
        deleted_at: The place at which the deletion was answered.
    """

    def __init__(self, directory: Path) -> None:
        self.disk = Disk()
        self.stages: dict[int, bool] = {}
        broker = open_broker(self.disk, directory)
        run = broker.store_rig.run
        run(broker.access.put_user(FIRST))
        run(broker.streams.create("a", {}))
        for sink, batch in SINKS.items():
            number = self._staged(broker, sink, batch, rows=3)
            commits = broker.virtual_host.commits
            run(commits.commit(FIRST.name, sink, batch, [number], lambda _: None))
        broker.loop.run_until(lambda: not commits.under_way)
        for rows, is_closed in ((1, True), (30, True), (30, False)):
            number = self._staged(broker, "three", 0, rows=rows, is_closed=is_closed)
            self.stages[number] = is_closed
        broker.loop.run_until(lambda: all(map(_is_stored, commits.stages)))
        self.begun_at = len(self.disk.record)
        run(broker.access.delete_user(FIRST.name))
        self.deleted_at = len(self.disk.record)
        run(broker.access.put_user(SECOND))
        broker.stop()

    @staticmethod
    def _staged(broker: Broker, sink: str, batch: int, *, rows: int, is_closed: bool = True) -> int:
        run, filling = broker.store_rig.run, broker.virtual_host.commits.filling
        number = filling.open(FIRST.name, sink, batch, "a").number
        filled = Filled(batch, [b"row %d" % row + b"." * 20 for row in range(rows)])
        for sequence in range(len(filled.frames())):
            run(fill(broker, number, filled, sequence))
        if is_closed:
            run(filling.close(FIRST.name, number))
        return number


def _is_stored(stage: object) -> bool:
    segment = getattr(stage, "segment", None)
    return segment is None or segment.stored == getattr(stage, "sequence", 0)


class Survey:
    """A broker that was opened after a crash, and what it has of the user."""

    def __init__(self, deletion: Deletion, image: Image, directory: Path) -> None:
        self.disk = Disk(image)
        self.broker = open_broker(self.disk, directory)
        self._deletion = deletion

    @property
    def user(self) -> str:
        """The tag of the user; empty if it is gone."""
        known = self.broker.access.user(FIRST.name)
        return "" if known is None else known.tags[0]

    def check(self, *, is_answered: bool) -> None:
        commits = self.broker.virtual_host.commits
        sinks = {sink: row.batch for sink, row in commits.sinks}
        stages = {stage.number: stage.is_closed for stage in commits.stages}
        if self.user in FIRST.tags:
            assert not is_answered, "a user that was deleted is back"
            assert (sinks, stages) == (SINKS, self._deletion.stages)
            return
        assert (sinks, stages) == ({}, {}), "something of a deleted user is left"
        rig = self.broker.store_rig
        page = rig.do(rig.store.iterate_table, names.commits_table("/"))
        assert {entry.key[:1] for entry in page.entries} == {b"n"}
        for number in self._deletion.stages:
            with pytest.raises(NoSuchSegment):
                rig.do(rig.store.info, names.stage_segment("/", number))


@pytest.mark.timeout(600)
def test_after_any_crash_a_user_is_there_with_its_stages_and_sinks_or_gone_with_them(
    tmp_path: Path,
) -> None:
    chance = random.Random(SEED)
    deletion = Deletion(tmp_path)
    record, aftermath = deletion.disk.record, Aftermath()
    found = set()
    for cut in range(len(record) + 1):
        torn = record[cut] if cut < len(record) else None
        for crash in Crash if cut >= deletion.begun_at else ():
            image, after = aftermath.after(crash, chance, torn)
            survey = Survey(deletion, image, tmp_path)
            try:
                survey.check(is_answered=cut >= deletion.deleted_at)
                found.add(survey.user)
                survey.broker.close()
                again_at = chance.randint(0, len(survey.disk.record))
                for step in survey.disk.record[:again_at]:  # the recovery is cut as well
                    after.advance(step, chance)
                survey = Survey(deletion, after.seen(), tmp_path)
                survey.check(is_answered=cut >= deletion.deleted_at)
                survey.broker.close()
            except Exception as error:
                raise AssertionError(f"seed {SEED}: {crash.value!r} at step {cut}") from error
        if torn is not None:
            aftermath.advance(torn, chance)

    assert found == {*FIRST.tags, "", *SECOND.tags}
