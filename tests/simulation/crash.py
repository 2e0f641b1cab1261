"""What may be on a disk after a crash, of what was written before it.

Only what POSIX promises is relied on. A file's bytes and size are durable after a sync of the
file, names after a sync of their directory; a rename is whole or has not happened. Anything since
may be there or not, in any order, but a sector of 512 bytes is never half of one write, and never
holds a later write without the earlier ones to it (the system writes its newest copy). A failed
sync leaves that to chance for good, though a running process sees its bytes.
"""

import enum
import random
from dataclasses import dataclass, field

from tests.simulation.disk import (
    SECTOR_BYTES,
    Allocate,
    Create,
    Cut,
    Image,
    Inode,
    MakeDirectory,
    Punch,
    Remove,
    Rename,
    Step,
    Sync,
    SyncDirectory,
    Write,
    parent_of,
    put,
)


class Crash(enum.Enum):
    """How a history ends."""

    KILL = "kill"
    """The process dies; the system keeps every write."""
    TORN_KILL = "torn kill"
    """The same, in the middle of the next write."""
    DROPPED = "dropped"
    """The power fails, and nothing that was not synced has reached the disk."""
    KEPT = "kept"
    """The power fails, and all of it has."""
    TORN = "torn"
    """Of each file some writes have in their order, the last in part."""
    ZEROED = "zeroed"
    """The files have their new sizes, but zeros for the bytes."""
    REORDERED = "reordered"
    """Any sectors, and any names."""

    @property
    def is_power_cut(self) -> bool:
        return self not in {Crash.KILL, Crash.TORN_KILL}


NameStep = MakeDirectory | Create | Rename | Remove
DataStep = Write | Allocate | Cut


@dataclass
class FileState:
    """A file: what is durable, and what was done since."""

    durable: bytes = b""
    pending: list[DataStep] = field(default_factory=list)
    current: bytearray | None = None
    """What a process sees: with all that is pending; None: the same as `durable`."""
    has_lost: bool = False
    """A sync has failed: a process sees bytes that will never be durable."""

    def now(self) -> bytes:
        return self.durable if self.current is None else bytes(self.current)

    def fork(self) -> "FileState":
        current = None if self.current is None else bytearray(self.current)
        return FileState(self.durable, list(self.pending), current, self.has_lost)

    def take(self, step: DataStep) -> None:
        if self.current is None:
            self.current = bytearray(self.durable)
        _do(self.current, step)
        self.pending.append(step)

    def settle(self, durable: bytes) -> None:
        """Make this the durable bytes, and forget what was pending."""
        self.durable = durable
        self.pending.clear()
        if not self.has_lost:
            self.current = None


class Aftermath:
    """Follows a record, and can tell at each step what a crash there might leave."""

    def __init__(self, image: Image | None = None) -> None:
        image = image or Image()
        self._files = {inode: FileState(data) for inode, data in image.contents.items()}
        self._directories = set(image.directories)
        self._names = dict(image.names)
        self._pending: list[NameStep] = []

    @property
    def has_lost(self) -> bool:
        """Whether processes see bytes that a failed sync has lost for good.

        The next process cannot know: it reads them, and its own sync succeeds. A power cut after
        that is beyond what a store can stand.
        """
        return any(state.has_lost for state in self._files.values())

    def fork(self) -> "Aftermath":
        """Give a copy that goes its own way: a process died here, and another goes on."""
        copy = Aftermath()
        copy._files = {inode: state.fork() for inode, state in self._files.items()}
        copy._directories = set(self._directories)
        copy._names = dict(self._names)
        copy._pending = list(self._pending)
        return copy

    def advance(self, step: Step, chance: random.Random) -> None:
        """Follow one step; `chance` decides what a failed sync has done."""
        match step:
            case Write() | Allocate() | Cut():
                self._files[step.inode].take(step)
            case Punch(inode, position, size):
                # What is left of it does not depend on how the zeros came there.
                self._files[inode].take(Write(inode, position, bytes(size)))
            case MakeDirectory() | Create() | Rename() | Remove():
                if isinstance(step, Create):
                    self._files[step.inode] = FileState()
                self._pending.append(step)
            case Sync(inode, has_failed):
                self._sync(self._files[inode], chance, has_failed=has_failed)
            case SyncDirectory(directory, False):
                self._sync_directory(directory)

    def _sync(self, state: FileState, chance: random.Random, *, has_failed: bool) -> None:
        if has_failed:
            # What survives now, survives; the rest is lost, and no later sync brings it back.
            # Only the running process still sees it (`current`), and nobody may rely on that.
            state.has_lost = state.has_lost or bool(state.pending)
            state.settle(chance.choice([state.durable, _reordered(state, chance)]))
        elif state.pending:
            state.settle(_applied(state.durable, state.pending))

    def _sync_directory(self, directory: str) -> None:
        ours = [step for step in self._pending if _directory_of(step) == directory]
        self._pending = [step for step in self._pending if _directory_of(step) != directory]
        for step in ours:
            _do_name(self._directories, self._names, step)

    def after(
        self, crash: Crash, chance: random.Random, torn: Step | None
    ) -> tuple[Image, "Aftermath"]:
        """Give what one crash of this kind leaves, and what follows the next process on it.

        Args:
            crash: How it ends.
            chance: Decides what else survives.
            torn: The step that a torn kill interrupts.
        """
        if crash.is_power_cut:
            files = {
                inode: _survivors(state, crash, chance) if state.pending else state.durable
                for inode, state in self._files.items()
            }
            image = self._named(self._surviving_names(crash, chance), files)
            return image, Aftermath(image)
        after = self.fork()
        if crash is Crash.TORN_KILL and isinstance(torn, Write):
            data = torn.data[: chance.randint(0, len(torn.data))]
            after.advance(Write(torn.inode, torn.position, data), chance)
        return after.seen(), after

    def seen(self) -> Image:
        """Give the disk as a process sees it now."""
        files = {inode: state.now() for inode, state in self._files.items()}
        return self._named(self._pending, files)

    def _surviving_names(self, crash: Crash, chance: random.Random) -> list[NameStep]:
        if crash is Crash.DROPPED:
            return []
        if crash is Crash.REORDERED:
            return [step for step in self._pending if chance.random() < 0.5]
        if crash is Crash.TORN:
            return self._pending[: chance.randint(0, len(self._pending))]
        return self._pending

    def _named(self, steps: list[NameStep], files: dict[Inode, bytes]) -> Image:
        directories, names = set(self._directories), dict(self._names)
        for step in steps:
            _do_name(directories, names, step)
        names = {
            path: inode
            for path, inode in names.items()
            if not parent_of(path) or parent_of(path) in directories
        }
        contents = {inode: files[inode] for inode in names.values()}
        return Image(frozenset(directories), names, contents)


def _directory_of(step: NameStep) -> str:
    return parent_of(step.target if isinstance(step, Rename) else step.path)


def _do_name(directories: set[str], names: dict[str, Inode], step: NameStep) -> None:
    match step:
        case MakeDirectory(path):
            directories.add(path)
        case Create(path, inode):
            names[path] = inode
        case Rename(source, target, inode):
            if names.get(source) == inode:
                del names[source]
            names[target] = inode
        case Remove(path, inode):
            if names.get(path) == inode:
                del names[path]


def _do(content: bytearray, step: DataStep) -> None:
    match step:
        case Write(_, position, data):
            put(content, position, data)
        case Allocate(_, end):
            content.extend(bytes(max(0, end - len(content))))
        case Cut(_, size):
            del content[size:]
            content.extend(bytes(size - len(content)))


def _applied(durable: bytes, steps: list[DataStep]) -> bytes:
    content = bytearray(durable)
    for step in steps:
        _do(content, step)
    return bytes(content)


def _survivors(state: FileState, crash: Crash, chance: random.Random) -> bytes:
    """Give the bytes of one file after a power cut of this kind."""
    if crash is Crash.DROPPED:
        return state.durable
    if crash is Crash.KEPT:
        return state.now()
    if crash is Crash.TORN:
        return _torn(state, chance)
    if crash is Crash.ZEROED:
        size = len(state.now())
        return state.durable[:size] + bytes(max(0, size - len(state.durable)))
    return _reordered(state, chance)


def _torn(state: FileState, chance: random.Random) -> bytes:
    count = chance.randint(0, len(state.pending) - 1)
    content = bytearray(_applied(state.durable, state.pending[:count]))
    last = state.pending[count]
    if isinstance(last, Write):
        end = last.position + len(last.data)
        cut = chance.randint(last.position, end)
        if chance.random() < 0.7:
            cut -= cut % SECTOR_BYTES
        put(content, last.position, last.data[: max(0, cut - last.position)])
    return bytes(content)


def _reordered(state: FileState, chance: random.Random) -> bytes:
    """Let each sector stop at a step of its own, and the size at another."""
    pending = state.pending
    size_at = chance.choice([0, len(pending), chance.randint(0, len(pending))])
    size = len(_applied(state.durable, pending[:size_at]))
    content = bytearray(state.durable)
    stops: dict[int, int] = {}
    bound = 2**63  # behind a cut that was lost, nothing that was written there later is found
    for index, step in enumerate(pending):
        if isinstance(step, Write):
            for position, data in _sectors(step):
                stop = stops.setdefault(
                    position // SECTOR_BYTES, chance.choice([0, len(pending), index, index + 1])
                )
                if index < stop:
                    put(content, position, data[: max(0, bound - position)])
        elif index < size_at:
            _do(content, step)
        elif isinstance(step, Cut):
            bound = min(bound, step.size)
    del content[size:]
    content.extend(bytes(size - len(content)))
    return bytes(content)


def _sectors(step: Write) -> list[tuple[int, bytes]]:
    """Cut a write at the sectors of the disk."""
    pieces = []
    position, end = step.position, step.position + len(step.data)
    while position < end:
        border = min(end, position - position % SECTOR_BYTES + SECTOR_BYTES)
        pieces.append((position, step.data[position - step.position : border - step.position]))
        position = border
    return pieces
