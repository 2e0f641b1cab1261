"""Two members, a log and a clock: what happens next is drawn from a seed."""

import logging
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import pytest

from store.api import Durability
from store.errors import StoreError
from store.local.state.data_file import DATA_DIRECTORY
from store.replica import trimming
from store.replica.follower import NeedsBase
from store.replica.local_copy import Place, place_in
from store.replica.log import LogGap
from store.replica.member import Member
from store.replica.message import HEAD_BYTES
from tests.conformance.harness import Rig
from tests.conformance.implementations import open_local
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image, Step
from tests.simulation.replica.jobs import Jobs, Seat, SeededLoop, in_one_order, seeded_workers
from tests.simulation.replica.oracle import Oracle, Wrong, need_chain, need_equal
from tests.simulation.replica.process import Process
from tests.simulation.replica.shared_log import Connection, Damage, Harm, SharedLog
from tests.simulation.trace import ALL, Mix, Trace
from tests.simulation.world import SIZES

STEPS: Final = 400
"""Steps of one seed, without those that are made while others wait."""
DEPTH_MAX: Final = 3
"""Steps within steps."""
NESTED_MAX: Final = 70
"""Steps that others make while a process is stopped in the middle of its own."""
HEALING_MAX: Final = 3_000
STORY_LINES: Final = 80
"""Last lines of its story that a seed that fails shows."""
OLD_MAX: Final = 6
MIXES: Final = (
    Mix(ALL.weights, own_durability=0),
    Mix(ALL.weights | {"truncate": 30, "append_bulk": 30}, own_durability=0),
    Mix(ALL.weights | {"update_table": 70, "remove_keys": 15}, own_durability=0),
)
BEGINNING_MS: Final = 1_700_000_000_000


class Machine:
    """A member's machine.

    Attributes:
        image: Its disk, while no process has it.
        process: The one that runs.
        starts_at: The time from which on one is started.
        asleep_until: The time up to which the process is stopped.
        needs_base: Its directory cannot be brought up.
        old: What its disk had at some times.
    """

    def __init__(self, name: str, skew_ms: int) -> None:
        self.name = name
        self.image = Image()
        self.process: Process | None = None
        self.starts_at = 0.0
        self.asleep_until = 0.0
        self.needs_base = False
        self.skew_ms = skew_ms
        self.old: list[Image] = []

    @property
    def seen(self) -> Image:
        """The content of its disk now."""
        return self.image if self.process is None else self.process.disk.image()

    def place(self) -> Place | None:
        """Return how far its directory is."""
        return place_in(Disk(self.seen))


class Cluster:
    """The simulation of one seed.

    Attributes:
        counts: How often each thing has happened.
        story: All that has happened.
    """

    def __init__(self, seed: int, seat: Seat, chance: random.Random) -> None:
        self.seed = seed
        self.chance = chance
        self.seat = seat
        self.now = 0.0
        self.story: list[str] = []
        self.counts: Counter[str] = Counter()
        self.oracle = Oracle()
        self.mix = chance.choice(MIXES)
        self.log_bytes_max = chance.choice([60_000, 300_000, 10**9])
        bytes_max = HEAD_BYTES + chance.choice([1_500, 6_000, 100_000])
        self.log = SharedLog(chance, self.clock, bytes_max)
        self.log.rate = chance.choice([0.0, 0.02, 0.1])
        self.rate = chance.choice([0.5, 1.0, 2.0])
        self._processes: list[Process] = []
        self._depth = 0
        self._is_healing = False
        skews = [chance.choice([0, 0, 700, -3_000]) for _ in range(2)]
        self.machines = [Machine(name, skew) for name, skew in zip("AB", skews, strict=True)]
        if chance.random() < 0.2:
            self._begin_with_a_store()

    # The world of a process

    def clock(self) -> float:
        return self.now

    def say(self, *words: object) -> None:
        self.story.append(f"{self.now:.2f} {'  ' * self._depth}{' '.join(map(str, words))}")

    def meanwhile(self, process: Process, waits_for: str, torn: Step | None) -> None:
        draw = self.chance.random() / self.rate if not self._is_healing else 1.0
        if draw < 0.001:
            self.counts["kills in a call"] += 1
            self._kill(self._machine_of(process), torn)
        elif draw < 0.0035 and self._depth < DEPTH_MAX:
            count = self.chance.choice([1, 3, 10, NESTED_MAX])
            self.say(process.name, "stops before", waits_for, "for", count)
            self.counts["stopped in a call"] += 1
            self._nested(count)

    def pause(self, process: Process) -> None:
        self.now += self.chance.uniform(0.0, 0.2)
        self.counts["pauses"] += 1
        if not self._is_healing and self.chance.random() < 0.01 * self.rate:
            self.counts["kills in a pause"] += 1
            self._kill(self._machine_of(process), None)
        elif self._depth < DEPTH_MAX:
            self._nested(self.chance.randint(0, 3))

    def ended(self, process: Process, reason: StoreError | None) -> None:
        machine = self._machine_of(process)
        self.say(process.name, "has ended", type(reason).__name__)
        if isinstance(reason, LogGap | NeedsBase):
            self.counts[type(reason).__name__] += 1
            machine.needs_base = isinstance(reason, NeedsBase) or not self._can_follow(machine)
        self._take_away(machine, machine.seen)

    # What may happen

    def run(self) -> None:
        """Let it all happen, then heal it, and judge."""
        for _ in range(STEPS):
            self.step()
        self.heal()
        self.end()

    def step(self) -> None:
        """Let one thing happen."""
        if all(each.process is not None and each.process.is_serving for each in self.machines):
            self.counts["steps with two that serve"] += 1
        self.now += self.chance.uniform(0.0, 0.06)
        machine = self.chance.choice(self.machines)
        draw = self.chance.random() / self.rate
        for border, happen in self._happenings:
            if draw < border:
                happen(machine)
                break
        else:
            self._let_go_on(machine)
        if self.chance.random() < 0.1:
            self._compare()

    @cached_property
    def _happenings(self) -> list[tuple[float, Callable[[Machine], object]]]:
        """The events beside the members' own steps, each below a border of what is drawn."""
        return [
            (0.006, lambda machine: self._kill(machine, None)),
            (0.012, self._stop),
            (0.040, self._keep_copy),
            (0.046, self._replace),
            (0.052, self._end_in_order),
            (0.064, lambda _: self._harm_log()),
            (0.080, lambda _: self.log.deliver_late()),
            (0.100, lambda _: self._wait()),
        ]

    def _wait(self) -> None:
        """Let time pass in which no member does anything."""
        self.now += self.chance.uniform(0.1, 1.0)

    def _let_go_on(self, machine: Machine) -> None:
        process = machine.process
        if process is None:
            self._start(machine)
        elif not process.is_on_stack and self.now >= machine.asleep_until:
            process.step()

    def _nested(self, count: int) -> None:
        """Let others go on while a process is in the middle of a step."""
        self._depth += 1
        for _ in range(count):
            if self._is_healing:
                self._let_go_on(self.chance.choice(self.machines))
            else:
                self.step()
        self._depth -= 1

    def _start(self, machine: Machine) -> None:
        if machine.needs_base:
            self._copy_base(machine)
        if self.now < machine.starts_at or machine.needs_base or not self._may_begin(machine):
            return
        name = machine.name

        def now_ms() -> int:
            return BEGINNING_MS + int(self.now * 1_000) + machine.skew_ms

        machine.process = Process(self, name, machine.image, now_ms)
        self._processes.append(machine.process)
        machine.asleep_until = 0.0
        self.counts["starts"] += 1
        self.say(name, "starts")

    def _may_begin(self, machine: Machine) -> bool:
        """Return whether it is not to wait for the one that has data already."""
        other = self._other(machine)
        return bool(self.log.record or machine.image.names or not other.seen.names)

    def _kill(self, machine: Machine, torn: Step | None) -> None:
        process = machine.process
        if process is None:
            return
        crash = self.chance.choice([Crash.KILL, Crash.KILL, *Crash])
        self.counts[f"{crash.value} of {'an active' if process.is_serving else 'a follower'}"] += 1
        self.say(machine.name, "is killed:", crash.value)
        if crash is Crash.KILL:
            image = process.disk.image()
        else:
            aftermath = Aftermath(process.begun_with)
            for step in process.disk.record:
                aftermath.advance(step, self.chance)
            image, _ = aftermath.after(crash, self.chance, torn)
        process.die()
        self._take_away(machine, image)

    def _take_away(self, machine: Machine, image: Image) -> None:
        """Have the process gone."""
        assert machine.process is not None
        machine.process.die()
        machine.process = None
        machine.image = image
        machine.starts_at = self.now + self.chance.choice([0.0, 0.3, 1.5])

    def _stop(self, machine: Machine) -> None:
        if machine.process is not None:
            seconds = self.chance.choice([0.5, 2.0, 5.0])
            machine.asleep_until = self.now + seconds
            self.counts["stops"] += 1
            self.say(machine.name, "is stopped for", seconds)

    def _end_in_order(self, machine: Machine) -> None:
        process = machine.process
        if process is not None and not process.is_on_stack:
            self.counts["ends of an active" if process.is_serving else "ends of a follower"] += 1
            process.leave()
            self.say(machine.name, "is to end")

    def _keep_copy(self, machine: Machine) -> None:
        image = machine.seen
        if place_in(Disk(image)) is not None or not image.names:  # else it is in no cluster
            machine.old = [*machine.old[-OLD_MAX:], image]

    def _replace(self, machine: Machine) -> None:
        """Have a machine come back with an old directory, with none, or with one of the other."""
        other = self._other(machine)
        if not self._is_whole(other):
            return
        old = [(image, "an old directory") for image in machine.old]
        image, name = self.chance.choice(
            [*old, (Image(), "nothing"), (other.seen, "a copy of the other")]
        )
        if machine.process is not None:
            self._kill(machine, None)
        machine.image, machine.needs_base = image, False
        self.counts[name] += 1
        self.say(machine.name, "comes back with", name)

    def _copy_base(self, machine: Machine) -> None:
        other = self._other(machine)
        if other.needs_base:
            raise Wrong("no member has all, and the log has it no more")
        if self._is_whole(other):
            machine.image, machine.needs_base = other.seen, False
            self.counts["bases"] += 1
            self.say(machine.name, "is made from a copy of", other.name)

    def _is_whole(self, machine: Machine) -> bool:
        """Return whether a machine's directory, and the log, have all that was ever confirmed."""
        place = machine.place()
        has_begun = place is not None and place.link.number > 0
        return has_begun and not machine.needs_base and self._can_follow(machine)

    def _can_follow(self, machine: Machine) -> bool:
        """Return whether the log has all that a machine's directory lacks."""
        place = machine.place()
        return max(1, 0 if place is None else place.position) >= self.log.trimmed

    def _harm_log(self) -> None:
        """Have the log be away, for all or for one, or a server give what is not in it."""
        seconds = self.chance.choice([0.3, 1.0, 4.0])
        until = self.now + seconds
        kind = self.chance.choice(["away", "cut", "damage"])
        process = self.chance.choice(self.machines).process
        if kind == "away":
            self.log.away_until = until
        elif kind == "cut" and process is not None:
            process.connection.cut_until = until
        elif kind == "damage":
            entry = self.log.last(self.chance.randint(0, 4))
            position = 0 if entry is None else entry.position + self.chance.randint(0, 1)
            self.log.damage = Damage(position, self.chance.choice([*Harm]), until)
        self.counts[kind] += 1
        self.say("log:", kind, "for", seconds)

    def _compare(self) -> None:
        """Demand that the members are equal, if they have all that is in the log.

        A directory that is not so far may have more than it says: it was killed before it noted
        that.
        """
        processes = [machine.process for machine in self.machines]
        copies = [
            (process.copy, process.disk)
            for process in processes
            if process is not None and process.copy is not None and not process.is_on_stack
        ]
        if len(copies) == 2 and need_equal(copies, self.log.memory.last()):
            self.counts["equal"] += 1

    # The end

    def heal(self) -> None:
        """Let nothing go wrong any more, until one member serves, and the other has all."""
        self._is_healing = True
        self.log.heal()
        for machine in self.machines:
            machine.starts_at = machine.asleep_until = 0.0
            if machine.process is not None:
                machine.process.connection.cut_until = 0.0
        for _ in range(HEALING_MAX):
            self.now += 0.02
            self._let_go_on(self.chance.choice(self.machines))
            if self._is_healed():
                return
        raise Wrong("no member serves, though nothing is wrong any more")

    def _is_healed(self) -> bool:
        """Return whether there is one that serves, and one that follows."""
        processes = [each.process for each in self.machines if each.process is not None]
        serving = [each for each in processes if each.is_serving and each.term is not None]
        last = self.log.memory.last()
        if len(processes) < 2 or len(serving) != 1 or last is None:
            return False
        serving[0].settle()
        copies = [(each.copy, each.disk) for each in processes if each.copy is not None]
        return len(copies) == 2 and need_equal(copies, self.log.memory.last())

    def end(self) -> None:
        """Kill the one that serves, have the other take over, and judge."""
        self.say("the end")
        terms = len(self.oracle.terms)
        for machine in self.machines:
            if machine.process is not None and machine.process.is_serving:
                self._kill(machine, None)
        self.heal()
        assert len(self.oracle.terms) > terms
        self.oracle.check()
        need_chain(self.log.record)
        self._follow_from_nothing()
        self.counts["terms"] += len(self.oracle.terms)
        self.counts["confirmed"] += sum(term.confirmed for term in self.oracle.terms)

    def _follow_from_nothing(self) -> None:
        """Demand that a new member gets what the others have, where the log has all of it."""
        if self.log.trimmed > 1 or self.counts["begun with a store"]:
            return
        disk = Disk()
        connection = Connection(self.log, lambda _: None)
        member = Member(
            disk,
            connection,
            name="C",
            ordered=(DATA_DIRECTORY,),
            now_ms=lambda: 0,
            pause=lambda: None,
        )
        member.follower.catch_up()
        process = self.machines[0].process
        assert process is not None
        assert process.copy is not None
        copies = [(member.follower.copy, disk), (process.copy, process.disk)]
        assert need_equal(copies, self.log.memory.last())
        self.counts["followed from nothing"] += 1

    def forget(self) -> None:
        """Let go of all that is large: the collector does not find all of a compiled store."""
        for term in self.oracle.terms:
            for part in (term.trace, term.rig.store, term.rig):
                vars(part).clear()
        self.oracle.terms.clear()
        for process in self._processes:
            process.disk.forget()
            vars(process).clear()
        self._processes.clear()
        self.machines.clear()

    # Small things

    def _machine_of(self, process: Process) -> Machine:
        return next(each for each in self.machines if each.process is process)

    def _other(self, machine: Machine) -> Machine:
        return next(each for each in self.machines if each is not machine)

    def _begin_with_a_store(self) -> None:
        """Have the first machine have a store that was in no cluster."""
        disk, jobs = Disk(), Jobs(self.chance)
        loop = SeededLoop(jobs, self.chance)
        with self.seat.taken(jobs):
            rig = Rig(
                lambda loop: open_local(
                    disk, loop, Durability.DISK, now_ms=lambda: BEGINNING_MS, **SIZES
                ),
                loop,
            )
        trace = Trace(rig, disk, Durability.DISK, self.chance, mix=self.mix)
        trace.run(40)
        rig.close()
        self.machines[0].image = disk.image()
        self.say("A has a store")
        self.counts["begun with a store"] += 1


class Errors(logging.Handler):
    """Log lines with a traceback, each of which is a bug."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.lines.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def quiet() -> Iterator[Errors]:
    """Have what the members say not be kept."""
    log, errors = logging.getLogger("store"), Errors()
    propagates, log.propagate = log.propagate, False
    log.addHandler(errors)
    try:
        yield errors
    finally:
        log.removeHandler(errors)
        log.propagate = propagates


def simulate(seed: int) -> Cluster:
    """Run a seed. Raises Wrong; an error's notes have the story."""
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, seeded_workers(chance) as seat, quiet() as errors:
        patch.setattr(secrets, "token_bytes", chance.randbytes)
        patch.setattr(secrets, "randbits", chance.getrandbits)
        in_one_order(patch)
        patch.setattr(trimming, "KEPT_S", 2.0)
        patch.setattr(trimming, "KEPT_BYTES", 10_000)
        patch.setattr(trimming, "_SAMPLE_S", 0.3)
        patch.setattr(trimming, "_SAMPLE_BYTES", 1_000)
        cluster = Cluster(seed, seat, chance)
        try:
            cluster.run()
            assert not errors.lines, errors.lines[:3]
        except Exception as error:
            error.add_note("\n".join(cluster.story[-STORY_LINES:]))
            error.add_note(f"seed {seed}; HUTCH_TEST_CLUSTER_SEED={seed} replays it")
            raise
        finally:
            cluster.forget()
    return cluster
