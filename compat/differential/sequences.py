"""Valid sequences of commands, drawn one by one: what is created, published, read, asked, deleted.

A sequence is a script like any other. Half of them store offsets; since a stored offset takes up an
offset of the stream in RabbitMQ and never in Hutch, offsets are not compared in these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from compat.differential import frames as f
from compat.differential.script import Action, Script, Step, Wait, framed, opened
from compat.differential.world import FULL_CREDIT, World

T = TypeVar("T")
Choose = Callable[[Sequence[T]], T]
CONNECTIONS = "AB"
LAST_CONNECTION = "Z"
STREAMS = ("~a", "~b", "~x-0", "~x-1")
SUPERS = {"~x": ("~x-0", "~x-1"), "~y": ("~y-0",)}
ALL_STREAMS = (*STREAMS, "~y-0")
KEYS = ("0", "1", "k")
REFERENCES = ("", "r", "s")
IDS = (1, 2)
ARGUMENTS: tuple[dict[str, str], ...] = ({}, {}, {"max-age": "1h"}, {"max-length-bytes": "900000"})
# What the broker needs for a stream when others are busy with it too.
TIMEOUT_S = 20.0


class Writer:
    """Writes one sequence, step by step."""

    def __init__(self, choose: Choose[object], *, has_tracking: bool) -> None:
        self._choose = choose
        self.has_tracking = has_tracking
        self.world = World(CONNECTIONS)
        self.bodies = 0
        self.publishing_id = 0
        self.correlation_id = 0

    def choose(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return self._choose(options)  # type: ignore[return-value]  # one of what it is given

    def corr(self) -> int:
        """Return a correlation id that was not used before."""
        self.correlation_id += 1
        return self.correlation_id

    def steps(self, length: int) -> Iterator[Step]:
        """Yield the steps of a sequence of so many commands, and at its end look at everything."""
        for letter in CONNECTIONS:
            yield opened(letter)
        for _ in range(length):
            # Nothing is worth doing without a stream, and most things with one.
            rule = self.choose(RULES if self.world.streams else MAKING)
            yield from rule(self, self.choose(CONNECTIONS))
        yield from self.state()

    # ------------------------------------------------------------------------------- the rules

    def create(self, letter: str) -> Iterator[Step]:
        """Create a stream, perhaps again."""
        name, arguments = self.choose(STREAMS), self.choose(ARGUMENTS)
        self.world.create(name)
        return self.asked(letter, f.create(name, arguments, corr=self.corr()))

    def delete(self, letter: str) -> Iterator[Step]:
        """Delete a stream, perhaps one that is not there."""
        name = self.choose(ALL_STREAMS)
        told = self.world.delete(name)
        return self.asked(letter, f.delete(name, corr=self.corr()), told=told)

    def create_super(self, letter: str) -> Iterator[Step]:
        """Create a super stream, perhaps again."""
        name = self.choose(tuple(SUPERS))
        partitions = list(SUPERS[name])
        keys = [self.choose(KEYS) for _ in partitions]
        self.world.create_super(name, partitions)
        return self.asked(letter, f.create_super(name, partitions, keys))

    def delete_super(self, letter: str) -> Iterator[Step]:
        """Delete a super stream; its name is never empty."""
        name = self.choose(tuple(SUPERS))
        told = self.world.delete_super(name)
        return self.asked(letter, f.delete_super(name), told=told)

    def declare(self, letter: str) -> Iterator[Step]:
        """Declare a publisher."""
        number, name, reference = self.choose(IDS), self.stream(), self.choose(REFERENCES)
        self.world.declare(letter, number, name, reference)
        return self.asked(letter, f.declare(number, name, reference, corr=self.corr()))

    def delete_publisher(self, letter: str) -> Iterator[Step]:
        """Delete a publisher."""
        number = self.choose(IDS)
        self.world.delete_publisher(letter, number)
        return self.asked(letter, f.delete_publisher(number, corr=self.corr()))

    def publish(self, letter: str) -> Iterator[Step]:
        """Publish; where offsets are compared, one entry only, which then is a chunk of its own."""
        number = self.choose(tuple(self.world.peers[letter].publishers) or IDS)
        count = self.choose((1, 1, 2, 5)) if self.has_tracking else 1
        # Lower ids than before are duplicates to a publisher that has a reference.
        first = self.publishing_id = max(0, self.publishing_id + self.choose((1, 1, 1, 2, -1)))
        self.publishing_id += count - 1
        kind = self.choose(("simple", "simple", "sub-batch", "filtered"))
        size = 3 if kind == "sub-batch" else 1
        entries = [self.entry(kind, first + at, size) for at in range(count)]
        frame = f.publish(number, *entries, version=2 if kind == "filtered" else 1)
        stored = dict.fromkeys(range(first, first + count), size)
        if self.world.publish(letter, number, stored):
            return self.asked(letter, frame, frames=0, confirmed=count)
        return self.asked(letter, frame)

    def entry(self, kind: str, publishing_id: int, size: int) -> bytes:
        """Return an entry of bodies that were never sent before."""
        bodies = [f"m{self.bodies + at}".encode() for at in range(size)]
        self.bodies += size
        if kind == "sub-batch":
            return f.sub_batch(publishing_id, f.inner(*bodies), records=size)
        if kind == "filtered":
            return f.filtered_entry(publishing_id, self.choose((None, "", "v")), bodies[0])
        return f.entry(publishing_id, bodies[0])

    def subscribe(self, letter: str) -> Iterator[Step]:
        """Subscribe, with no credit or with enough for everything."""
        number, name = self.choose(IDS), self.stream()
        credit = self.choose((FULL_CREDIT, FULL_CREDIT, 0))
        place, index = self.place(name)
        self.world.subscribe(letter, number, name, index, credit)
        return self.asked(letter, f.subscribe(number, name, place, credit, corr=self.corr()))

    def place(self, name: str) -> tuple[bytes, int]:
        """Draw an offset specification; return it, and the entry at which it begins to read."""
        stream = self.world.streams.get(name)
        if stream is None:
            return f.FIRST, 0
        end = len(stream.entries)
        options = [(f.FIRST, 0), (f.NEXT, end)]
        if not self.has_tracking:
            offset = self.choose(range(stream.next_offset + 2))
            options += [(f.LAST, max(end - 1, 0)), (f.at_offset(offset), stream.index_of(offset))]
        return self.choose(options)

    def credit(self, letter: str) -> Iterator[Step]:
        """Return credit, perhaps to no subscription."""
        number = self.choose(IDS)
        reader = self.world.peers[letter].readers.get(number)
        if reader is None:
            return self.asked(letter, f.credit(number, FULL_CREDIT))
        if reader.credit:
            return self.asked(letter, f.credit(number, 1), frames=0)
        reader.credit = FULL_CREDIT
        return self.asked(letter, f.credit(number, FULL_CREDIT), frames=0)

    def unsubscribe(self, letter: str) -> Iterator[Step]:
        """End a subscription."""
        number = self.choose(IDS)
        self.world.unsubscribe(letter, number)
        return self.asked(letter, f.unsubscribe(number, corr=self.corr()))

    def store(self, letter: str) -> Iterator[Step]:
        """Store an offset, where offsets are not compared, and ask for it."""
        name, reference = self.stream(), self.choose(REFERENCES)
        self.world.watch(letter, name)
        frames = [f.query_offset(reference, name, corr=self.corr())]
        if self.has_tracking:
            frames.insert(0, f.store_offset(reference, name, self.choose((0, 1, 7, 2**40))))
        return self.asked(letter, *frames)

    def query_sequence(self, letter: str) -> Iterator[Step]:
        """Ask for the last publishing id."""
        frame = f.query_sequence(self.choose(REFERENCES), self.stream(), corr=self.corr())
        return self.asked(letter, frame)

    def look(self, letter: str) -> Iterator[Step]:
        """Ask something that changes nothing."""
        name, super_name = self.stream(), self.choose(tuple(SUPERS))
        frames = [
            f.metadata(name, self.choose(ALL_STREAMS), corr=self.corr()),
            f.partitions(super_name, corr=self.corr()),
            f.route(self.choose(KEYS), super_name, corr=self.corr()),
            f.versions((2, 1, 2), corr=self.corr()),
        ]
        if not self.has_tracking:
            frames.append(f.stream_stats(name, corr=self.corr()))
            frames.append(f.resolve(name, self.place(name)[0], corr=self.corr()))
        return self.asked(letter, self.choose(frames))

    # ---------------------------------------------------------------------------------- parts

    def stream(self) -> str:
        """Draw a stream, mostly one that is there."""
        there = tuple(self.world.streams)
        return self.choose((*there, *there, *there, *there, self.choose(ALL_STREAMS)))

    def asked(
        self,
        letter: str,
        *bodies: bytes,
        frames: int = 1,
        confirmed: int = 0,
        told: Counter[str] | None = None,
    ) -> Iterator[Step]:
        """Send on one connection, and wait on both for everything that follows from it."""
        updates = told or Counter[str]()
        records = self.world.delivered()
        for other in sorted(CONNECTIONS, key=lambda one: one != letter):
            own = frames if other == letter else 0
            wait = Wait(
                frames=own + updates[other],
                confirmed=confirmed if other == letter else 0,
                records=records[other],
                timeout_s=TIMEOUT_S,
            )
            if other == letter:
                yield Step(action=Action.SEND, connection=other, data=framed(*bodies), wait=wait)
            elif wait.frames or wait.records:
                yield Step(action=Action.HEAR, connection=other, wait=wait)

    def state(self) -> Iterator[Step]:
        """Ask on a new connection for everything that a server keeps."""
        yield opened(LAST_CONNECTION)
        yield self.last(f.metadata(*ALL_STREAMS))
        for name in SUPERS:
            yield self.last(f.partitions(name))
            for key in KEYS:
                yield self.last(f.route(key, name))
        for number, (name, stream) in enumerate(sorted(self.world.streams.items())):
            for reference in REFERENCES:
                yield self.last(f.query_sequence(reference, name))
                yield self.last(f.query_offset(reference, name))
            if not self.has_tracking:
                yield self.last(f.stream_stats(name))
                for place in (f.FIRST, f.LAST, f.NEXT):
                    yield self.last(f.resolve(name, place))
            everything = f.subscribe(number, name, f.FIRST, FULL_CREDIT)
            yield self.last(everything, records=stream.records_from(0))

    def last(self, body: bytes, records: int = 0) -> Step:
        """Return a step of the last look."""
        wait = Wait(frames=1, records=records, timeout_s=TIMEOUT_S)
        return Step(action=Action.SEND, connection=LAST_CONNECTION, data=framed(body), wait=wait)


Rule = Callable[[Writer, str], Iterator[Step]]
MAKING: tuple[Rule, ...] = (Writer.create, Writer.create, Writer.create_super)
RULES: tuple[Rule, ...] = (
    *MAKING, Writer.delete, Writer.delete_super,
    *(Writer.declare,) * 4, *(Writer.publish,) * 8, Writer.delete_publisher,
    *(Writer.subscribe,) * 4, Writer.credit, Writer.unsubscribe,
    Writer.store, Writer.store, Writer.query_sequence, *(Writer.look,) * 3,
)  # fmt: skip


@st.composite
def sequences(draw: st.DrawFn, length_max: int) -> Script:
    """Draw a sequence of up to so many commands."""
    has_tracking = draw(st.booleans())
    length = draw(st.integers(1, length_max))
    writer = Writer(lambda options: draw(st.sampled_from(options)), has_tracking=has_tracking)
    name = f"a valid sequence{' with stored offsets' if has_tracking else ''}"
    return Script(name, tuple(writer.steps(length)), has_free_offsets=has_tracking)
