"""One life of a member: from the opening of its directory until it ends, or is killed."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from store.api import Durability
from store.errors import StoreClosed, StoreError
from store.local.state.data_file import DATA_DIRECTORY
from store.replica.files import ReplicatedFiles
from store.replica.following import SYNC_S, Following
from store.replica.local_copy import LocalCopy, Unsynced
from store.replica.log import LogAway
from store.replica.member import Member
from store.replica.trimming import Trimming
from tests.conformance.harness import Rig
from tests.conformance.implementations import open_local
from tests.simulation.disk import Disk, Image, Step
from tests.simulation.history import observe
from tests.simulation.replica.jobs import Jobs, Seat, SeededLoop
from tests.simulation.replica.oracle import Oracle, Term
from tests.simulation.replica.shared_log import Connection, SharedLog
from tests.simulation.trace import ATTRIBUTES, NAMES, Mix, Trace
from tests.simulation.world import SIZES

BEAT_S: Final = 0.2
TAKEOVER_BEATS: Final = 3
TRIM_S: Final = 0.5


class Killed(BaseException):
    """The process does not exist any more: nothing of it goes on."""


class Surroundings(Protocol):
    """The world of a process.

    Attributes:
        chance: Draws all that happens.
        log: The log that all members share.
        seat: The process that makes a store.
        oracle: Judges what the members say.
        mix: The operations of clients.
        log_bytes_max: The largest size of the log.
    """

    chance: random.Random
    log: SharedLog
    seat: Seat
    oracle: Oracle
    mix: Mix
    log_bytes_max: int

    def clock(self) -> float:
        """Return the time."""
        ...

    def meanwhile(self, process: "Process", waits_for: str, torn: Step | None) -> None:
        """Have happen what happens while a process waits."""
        ...

    def pause(self, process: "Process") -> None:
        """Have time pass."""
        ...

    def ended(self, process: "Process", reason: StoreError | None) -> None:
        """Note that a process has ended by itself."""
        ...

    def say(self, *words: object) -> None:
        """Write down what happens."""
        ...


class Process:
    """A process of a member.

    Attributes:
        is_dead: It was killed, or has ended.
        is_on_stack: It is in the middle of a step.
        is_leaving: It ends as soon as it can.
        begun_with: What its disk had at first.
    """

    def __init__(
        self, world: Surroundings, name: str, image: Image, now_ms: Callable[[], int]
    ) -> None:
        self.name = name
        self.begun_with = image
        self.disk = Disk(image)
        self.disk.before_write = self._before_disk
        self.disk.before_sync = self._before_disk
        self.connection = Connection(world.log, self.meanwhile)
        self.following: Following | None = None
        self.is_dead = self.is_on_stack = self.is_leaving = False
        self.term: Term | None = None
        self._world = world
        self._now_ms = now_ms
        self._jobs = Jobs(world.chance)
        self._loop = SeededLoop(self._jobs, world.chance)
        self._is_taking_over = False
        self._files: ReplicatedFiles | None = None
        self._rig: Rig | None = None
        self._may_work = self._syncs_copy = False
        self._beat_at = self._sync_at = self._trim_at = 0.0
        self._trimming = Trimming(world.log_bytes_max, world.clock)

    # What it is

    @property
    def is_serving(self) -> bool:
        """True if its store is open, and has not failed."""
        return self._rig is not None and not self.is_leaving

    @property
    def has_begun_term(self) -> bool:
        """True if it has taken over, maybe from itself."""
        return self._files is not None

    @property
    def copy(self) -> LocalCopy | None:
        """Its copy."""
        return None if self.following is None else self.following.copy

    # What it does

    def step(self) -> None:
        """Do one thing, in the middle of which others may do theirs."""
        assert not self.is_on_stack
        self.is_on_stack = True
        try:
            self._next()
        except Killed:
            assert self.is_dead
        except LogAway:
            pass
        except StoreError as error:
            self._fail(error)
        finally:
            self.is_on_stack = False

    def _next(self) -> None:
        if self.is_leaving:
            self._leave()
        elif self.following is None:
            self._join()
        elif self._files is None:
            self._follow(self.following)
        elif self._rig is None:
            self._open(self._files)
        else:
            self._serve(self._files)

    def _fail(self, error: StoreError) -> None:
        """End by an error, as the process does: a store is closed first."""
        self._world.say(self.name, "fails", type(error).__name__, str(error)[:80])
        if self._rig is not None and not self.is_leaving:
            self.is_leaving = True
        else:
            self._world.ended(self, error)

    def _join(self) -> None:
        world = self._world
        member = Member(
            self.disk,
            self.connection,
            name=self.name,
            ordered=(DATA_DIRECTORY,),
            now_ms=self._now_ms,
            pause=self._pause,
        )
        self.following = Following(
            member,
            self.connection,
            beat_s=BEAT_S,
            takeover_beats=TAKEOVER_BEATS,
            clock=world.clock,
        )
        world.say(self.name, "joins at", member.follower.copy.place.link.number)

    def _follow(self, following: Following) -> None:
        if not self._is_taking_over:
            following.step()
            self._is_taking_over = following.is_due
            return
        self._files = following.member.take_over()
        self._is_taking_over = False
        if self._files is not None:
            self._world.say(self.name, "begins term", following.copy.place.link.term)
            self._let_work_while_it_syncs(following.copy)

    def _open(self, files: ReplicatedFiles) -> None:
        world = self._world
        with world.seat.taken(self._jobs):
            rig = Rig(
                lambda loop: open_local(
                    files,
                    loop,
                    Durability.DISK,
                    now_ms=self._now_ms,
                    failed=self._failed,
                    **SIZES,
                ),
                self._loop,
            )
        self._rig = rig
        seen = observe(rig, NAMES, ATTRIBUTES)
        trace = Trace(rig, self.disk, Durability.DISK, world.chance, mix=world.mix, states=seen)
        assert self.copy is not None
        self.term = Term(self.copy.place.link.term, self.name, seen, trace, rig)
        world.oracle.terms.append(self.term)
        world.say(self.name, "serves term", self.term.number)

    def _failed(self, reason: StoreClosed) -> None:
        self._world.say(self.name, "has a store that failed", str(reason)[:80])
        self.is_leaving = True

    def _serve(self, files: ReplicatedFiles) -> None:
        world = self._world
        assert self.term is not None
        if world.clock() >= self._beat_at:
            self._beat_at = world.clock() + BEAT_S
            self._do_duties(files)
        elif world.chance.random() < 0.7:
            self.term.trace.step()
            self.term.trace.read()
        else:
            self._work(world.chance.randint(1, 6))

    def _work(self, count: int) -> None:
        for _ in range(count):
            if not self._loop.work():
                return

    def settle(self) -> None:
        """Have all clients get their answers."""
        assert self.term is not None
        self.is_on_stack = True
        self.term.trace.settle()
        self.is_on_stack = False

    # The calls that the active member's thread makes

    def _do_duties(self, files: ReplicatedFiles) -> None:
        now, shipping, following = self._world.clock(), files.shipping, self.following
        assert following is not None
        following.beat(is_active=True)
        shipping.look()
        if now >= self._sync_at:
            self._syncs_copy = True
            shipping.sync_copy()
            self._sync_at = now + SYNC_S
        if now >= self._trim_at:
            self._trim(files, following)
            self._trim_at = now + TRIM_S

    def _trim(self, files: ReplicatedFiles, following: Following) -> None:
        trimming, copy = self._trimming, following.copy
        trimming.note(copy.place.position, files.shipping.sent_bytes)
        others = [beat.synced for _, beat in following.others().values()]
        position = trimming.position(copy.synced.position, others, self.connection.size())
        if position > 1:
            self.connection.trim(position - 1)

    def _let_work_while_it_syncs(self, copy: LocalCopy) -> None:
        """Have the store go on while a part is synced: nothing is locked then."""
        sync_part = copy.sync_part

        def work_and_sync(part: Unsynced) -> None:
            self._may_work, self._syncs_copy = self._syncs_copy, False
            try:
                sync_part(part)
            finally:
                self._may_work = False

        setattr(copy, "sync_part", work_and_sync)  # noqa: B010  # a method, to the type checker

    # The end

    def leave(self) -> None:
        """End in good order, from the next step on."""
        self.is_leaving = True

    def _leave(self) -> None:
        """Close the store, hand over, and close the directory."""
        error: StoreError | None = None
        try:
            if self._rig is not None:
                self._rig.close(may_fail=True)
            if self._files is not None:
                self._files.shipping.hand_over()
                self._world.say(self.name, "hands over")
        except StoreError as failure:
            error = failure
        if self.following is not None:
            self.following.member.close()
        self._world.ended(self, error)

    def die(self) -> None:
        """Stop to exist."""
        self.is_dead = True
        self.connection.lose()

    # While it waits

    def meanwhile(self, waits_for: str, torn: Step | None = None) -> None:
        """Let others do something. Raises Killed."""
        self._need_life()
        self._world.meanwhile(self, waits_for, torn)
        self._need_life()

    def _pause(self) -> None:
        self._need_life()
        self._world.pause(self)
        self._need_life()
        if self._rig is not None and not self.is_leaving:
            self._loop.turn()
        if self.following is not None and self._files is not None:
            with suppress(LogAway):  # on its own thread nobody waits for it
                self.following.beat(is_active=True)

    def _before_disk(self, step: Step) -> None:
        self.meanwhile("disk", step)
        if self._may_work:
            self._may_work = False
            self._work(self._world.chance.randint(0, 4))
            self._may_work = True

    def _need_life(self) -> None:
        if self.is_dead:
            raise Killed
