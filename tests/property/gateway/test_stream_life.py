"""A stream under publishing, crashes and restarts, against the list of what was accepted.

A crash is a copy of the directory, taken while the server goes on: what the next one opens.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from gateway.log.derived import index as index_module
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.chunks import Entry, SubBatch
from tests.unit.gateway.log.log_rig import chunks_in, snapshot_after_chunks
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

UNNAMED = ""
REFERENCES = ("a", "b")
FRAME_BYTES_MAX = 4096


class StreamLife(RuleBasedStateMachine):
    """One stream `s`, a publisher without a name (id 0) and two with one (1 and 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="hutch-test-"))
        self.run_count = 0
        # In the order in which they were accepted: reference, publishing id, records.
        self.accepted: list[tuple[str, int, list[bytes]]] = []
        self.next_id = dict.fromkeys((UNNAMED, *REFERENCES), 1)
        self.body = 0
        self.confirmed: set[tuple[str, int]] = set()
        self.epoch = 1
        # What a reference's offset may be after a crash: what was answered last, and what was
        # stored since, in that order. None: nothing was.
        self.offsets: dict[str, list[int | None]] = {"c": [None], "d": [None]}

    @property
    def place(self) -> Path:
        return self.directory / str(self.run_count)

    @initialize()
    def create(self) -> None:
        self.broker = Broker(self.place, frame_bytes_max=FRAME_BYTES_MAX)
        self.client = self.broker.link()
        self.client.create("s")
        self.declare()

    def declare(self) -> None:
        for publisher_id, reference in enumerate((UNNAMED, *REFERENCES)):
            self.client.declare(publisher_id, "s", reference)
        # Whoever resends goes on from what the server says, as clients do after a reconnection.
        for reference in REFERENCES:
            stored = [each for name, each, _ in self.accepted if name == reference]
            assert self.sequence(self.client, reference) == (stored[-1] if stored else 0)

    def sequence(self, client: LinkRig, reference: str) -> int:
        request = m.QueryPublisherSequence(reference, "s")
        answer = client.ask(m.PublisherSequence, "query_publisher_sequence", request)
        assert answer.code == ResponseCode.OK
        return answer.sequence

    def records(self, size: int, count: int) -> list[bytes]:
        """Records that nobody has published yet."""
        self.body += 1
        return [b"%d.%d " % (self.body, number) + bytes(size) for number in range(count)]

    # Rules

    @rule(
        publisher_id=st.integers(0, 2),
        sizes=st.lists(st.sampled_from([0, 10, 900, 4_000]), min_size=1, max_size=6),
        is_batch=st.booleans(),
        resent=st.integers(0, 3),
    )
    def publish(self, *, publisher_id: int, sizes: list[int], is_batch: bool, resent: int) -> None:
        """Publish new entries, behind some that were published before."""
        reference = (UNNAMED, *REFERENCES)[publisher_id]
        entries: list[tuple[int, Entry]] = []
        if reference:
            known = [each for name, each, _ in self.accepted if name == reference]
            entries += [(each, b"again") for each in known[-resent:] if resent]
        for size in sizes:
            publishing_id = self.next_id[reference]
            self.next_id[reference] += 1
            bodies = self.records(min(size, 1_500) if is_batch else size, 2 if is_batch else 1)
            entries.append((publishing_id, SubBatch.of(bodies) if is_batch else bodies[0]))
            self.accepted.append((reference, publishing_id, bodies))
        for entry in entries:  # each in a frame of its own: some are as large as a frame may be
            self.client.publish(publisher_id, entry)

    @rule(turns=st.integers(1, 3))
    def turn(self, turns: int) -> None:
        for _ in range(turns):
            self.broker.loop.turn()
        self.gather()

    @rule()
    def settle(self) -> None:
        self.broker.settle("s")
        self.gather()
        assert self.confirmed == {(name, each) for name, each, _ in self.accepted}

    def gather(self) -> None:
        for publisher_id, ids in self.client.confirmed():
            reference = (UNNAMED, *REFERENCES)[publisher_id]
            self.confirmed.update((reference, each) for each in ids)

    @rule(reference=st.sampled_from(["c", "d"]), offset=st.integers(0, 100))
    def store_offset(self, reference: str, offset: int) -> None:
        self.client.tell("store_offset", m.StoreOffset(reference, "s", offset))
        self.offsets[reference].append(offset)

    @rule(reference=st.sampled_from(["c", "d"]))
    def query_offset(self, reference: str) -> None:
        stored_last = self.offsets[reference][-1]
        assert self.answered_offset(reference) == stored_last

    def answered_offset(self, reference: str) -> int | None:
        answer = self.client.ask(m.StoredOffset, "query_offset", m.QueryOffset(reference, "s"))
        offset = answer.offset if answer.code == ResponseCode.OK else None
        assert offset in self.offsets[reference]
        self.offsets[reference] = [offset]
        return offset

    @rule()
    def crash(self) -> None:
        """Go on from what is on the disk at this moment; what was not stored is resent later."""
        self.gather()
        old = self.broker
        source = self.place
        self.run_count += 1
        shutil.copytree(source, self.place)
        old.close()
        self.restarted(epoch=self.epoch + 1)

    @rule()
    def restart(self) -> None:
        self.broker.stop()
        self.gather()
        assert self.confirmed == {(name, each) for name, each, _ in self.accepted}
        self.restarted(epoch=self.epoch)

    def restarted(self, *, epoch: int) -> None:
        self.broker = Broker(self.place, frame_bytes_max=FRAME_BYTES_MAX)
        self.client = self.broker.link()
        self.epoch = epoch
        stored = self.stored_records()
        # What is stored is what was accepted up to some entry, and nothing confirmed is behind it.
        kept: list[tuple[str, int, list[bytes]]] = []
        for entry in self.accepted:
            if sum(len(records) for _, _, records in kept) == len(stored):
                break
            kept.append(entry)
        assert [record for _, _, records in kept for record in records] == stored
        assert self.confirmed <= {(name, each) for name, each, _ in kept}
        self.accepted = kept
        # What was stored and not confirmed any more is learnt by asking, or resent.
        self.confirmed = {(name, each) for name, each, _ in kept}
        for reference in REFERENCES:
            ids = [each for name, each, _ in kept if name == reference]
            self.next_id[reference] = ids[-1] + 1 if ids else 1
        self.declare()
        for reference in self.offsets:
            self.answered_offset(reference)

    # What always holds

    def stored_records(self) -> list[bytes]:
        """Every stored record, by a look at the bytes; offsets are dense, times do not go back."""
        content = self.broker.store_rig.content_now(self.broker.log("s"))
        chunks = [chunk for chunk, _ in chunks_in(content)]
        next_offset = timestamp_ms = epoch = 0
        for chunk in chunks:
            assert chunk.chunk_id == next_offset
            assert chunk.timestamp_ms >= timestamp_ms
            assert epoch <= chunk.epoch <= self.epoch
            assert 48 + len(chunk.data) <= FRAME_BYTES_MAX - 13 or chunk.entry_count == 1
            next_offset += chunk.record_count
            timestamp_ms, epoch = chunk.timestamp_ms, chunk.epoch
        return [record for chunk in chunks for record in chunk.records()]

    @rule()
    def read_from_the_first(self) -> None:
        """A consumer sees the committed records, each once, in order, and nothing else."""
        reader = self.broker.link()
        reader.tell("subscribe", m.Subscribe(1, "s", FIRST, 10_000, {}))
        log = self.broker.log("s")
        found: list[tuple[int, bytes]] = []
        while len(found) < log.committed_next_offset:
            woken = len(reader.ports.woken)
            for delivery in reader.deliver(1):
                found += enumerate(delivery.chunk.records(), delivery.chunk.chunk_id)
            if len(found) < log.committed_next_offset:
                self.broker.loop.run_until(lambda w=woken: len(reader.ports.woken) > w)  # type: ignore[misc]  # bound at once
        expected = [record for _, _, records in self.accepted for record in records]
        assert found == list(enumerate(expected))[: len(found)]
        reader.link.close()

    @invariant()
    def nothing_is_refused(self) -> None:
        if hasattr(self, "client"):
            assert self.client.refused() == []
            assert self.broker.fatal_errors == []

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
        shutil.rmtree(self.directory)


@pytest.mark.parametrize("snapshot_chunks", [3, 1_000])
def test_a_stream_keeps_what_it_confirmed_and_stores_no_id_twice(
    monkeypatch: pytest.MonkeyPatch, snapshot_chunks: int
) -> None:
    snapshot_after_chunks(monkeypatch, snapshot_chunks)
    monkeypatch.setattr(index_module, "SPAN_BYTES", 2_000)
    case = StreamLife.TestCase
    case.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
    case().runTest()
