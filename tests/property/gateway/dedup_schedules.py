"""Random schedules of named publishers whose ids have gaps, go back, or are near 2^63 and 2^64.

    python -m tests.property.gateway.dedup_schedules [--schedules 10000] [--state FILE]

Between the publishes the server stops, or is cut off, and is opened again from its files: what is
stored must be what an ordered list says, and no id may be stored twice. With a state file the count
goes on where the last run was stopped (by Ctrl-C, for instance), with other schedules.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.log.log_rig import chunks_in
from tests.unit.gateway.stream.link_rig import Broker

SCHEDULES: Final = 10_000
STEPS: Final = 15
U64_MAX: Final = 2**64 - 1
REFERENCES: Final = ("a", "b")
_BATCH: Final = 20
EDGES: Final = (0, 1, 2**31, 2**32, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, U64_MAX)

publishing_ids = st.one_of(st.sampled_from(EDGES), st.integers(0, 12), st.integers(0, U64_MAX))


class DedupLife(RuleBasedStateMachine):
    """One stream with two named publishers and one without a name."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="hutch-test-"))
        self.run_count = 0
        self.last: dict[str, int] = {}
        self.expected: list[bytes] = []
        self.body = 0

    @property
    def place(self) -> Path:
        return self.directory / str(self.run_count)

    @initialize()
    def create(self) -> None:
        self.broker = Broker(self.place)
        self.client = self.broker.link()
        self.client.create("s")
        self.declare()

    def declare(self) -> None:
        self.client.declare(0, "s")
        for publisher_id, reference in enumerate(REFERENCES, start=1):
            self.client.declare(publisher_id, "s", reference)

    @rule(publisher_id=st.integers(0, 2), ids=st.lists(publishing_ids, min_size=1, max_size=6))
    def publish(self, publisher_id: int, ids: list[int]) -> None:
        """Publish in one frame; every id is confirmed, whether it was stored or known before."""
        entries: list[tuple[int, bytes]] = []
        for publishing_id in ids:
            self.body += 1
            body = b"%d" % self.body
            entries.append((publishing_id, body))
            if publisher_id:
                reference = REFERENCES[publisher_id - 1]
                last = self.last.get(reference)
                if last is not None and publishing_id <= last:
                    continue
                self.last[reference] = publishing_id
            self.expected.append(body)
        self.client.publish(publisher_id, *entries)
        self.broker.settle("s")
        confirmed = [each for _, found in self.client.confirmed() for each in found]
        assert sorted(confirmed) == sorted(ids)

    @rule(publisher_id=st.integers(1, 2), over=st.integers(0, 3))
    def publish_next(self, publisher_id: int, over: int) -> None:
        """Go on a little after the last id, as far as there are any."""
        last = self.last.get(REFERENCES[publisher_id - 1], -1)
        self.publish(publisher_id, [min(last + 1 + over, U64_MAX)])

    @rule()
    def declare_again(self) -> None:
        """A publisher that comes back finds what it stored before."""
        self.client.tell("delete_publisher", m.DeletePublisher(1))
        self.client.received()
        self.client.ports.frames.clear()
        self.client.declare(1, "s", REFERENCES[0])

    @rule()
    def restart(self) -> None:
        """Stop in good order and open the same files."""
        self.broker.stop()
        self.reopen()

    @rule()
    def crash(self) -> None:
        """Go on from the files as they are at this moment."""
        old = self.broker
        source = self.place
        self.run_count += 1
        shutil.copytree(source, self.place)
        old.close()
        self.reopen()

    def reopen(self) -> None:
        self.broker = Broker(self.place)
        self.client = self.broker.link()
        self.declare()
        self.check()

    @rule()
    def check(self) -> None:
        """What is stored is what the list says, and the server knows each last id."""
        log = self.broker.log("s")
        content = self.broker.store_rig.content_now(log)
        stored = [record for chunk, _ in chunks_in(content) for record in chunk.records()]
        assert stored == self.expected
        for reference in REFERENCES:
            request = m.QueryPublisherSequence(reference, "s")
            answer = self.client.ask(m.PublisherSequence, "query_publisher_sequence", request)
            assert answer == m.PublisherSequence(ResponseCode.OK, self.last.get(reference, 0))

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
        shutil.rmtree(self.directory)


def run_schedules(number: int, count: int) -> None:
    """Run so many schedules; the same ones for the same number."""
    seeded = seed(number)(DedupLife)
    run_state_machine_as_test(
        seeded,
        settings=settings(
            max_examples=count, stateful_step_count=STEPS, deadline=None, database=None
        ),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is left of the schedules."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--state", type=Path, help="where to go on, and to note how far it came")
    options = parser.parse_args(arguments)
    state: Path | None = options.state
    done = json.loads(state.read_text()) if state is not None and state.exists() else 0
    try:
        while done < options.schedules:
            count = min(_BATCH, options.schedules - done)
            run_schedules(done, count)
            done += count
            if state is not None:
                state.parent.mkdir(parents=True, exist_ok=True)
                new = state.with_suffix(".new")
                new.write_text(json.dumps(done))
                new.replace(state)
            sys.stdout.write(f"{done} schedules\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stdout.write("stopped; the same command goes on from here\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
