"""Exchanges, bindings and super streams at random, several at once, with deaths and restarts.

What happens at once must be what some order of the same operations would have done.
"""

import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.broker.hosts import super_streams
from gateway.pending import run
from gateway.stream.refusals import code_of
from hutch.stream import messages as m
from tests.property.gateway.topology_model import (
    OK,
    Add,
    Bind,
    Create,
    CreateSuper,
    Declare,
    Delete,
    DeleteSuper,
    Model,
    Operation,
    Unbind,
    Undeclare,
    exchange_of,
)
from tests.unit.gateway.broker.hosts.test_super_streams import die_after
from tests.unit.gateway.broker.streams.test_streams import catalogued
from tests.unit.gateway.broker.topology.test_exchanges import rows
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

EXCHANGES = ("x", "y", "amq.topic")
STREAMS = ("p", "q", "r")
KEYS = ("", "k", "#")

names = st.sampled_from(EXCHANGES[:2])
exchanges = st.sampled_from(EXCHANGES)
streams = st.sampled_from(STREAMS)
keys = st.sampled_from(KEYS)
several = st.lists(streams, max_size=3).map(tuple)
orders = st.sampled_from([None, 0, 1, 5])
operations = st.one_of(
    st.builds(Create, streams),
    st.builds(Delete, streams),
    st.builds(CreateSuper, names, several, st.lists(keys, max_size=3).map(tuple)),
    several.flatmap(
        lambda parts: st.builds(
            CreateSuper, names, st.just(parts), st.tuples(*[keys for _ in parts])
        )
    ),
    st.builds(DeleteSuper, exchanges),
    st.builds(Add, names, several),
    st.builds(Declare, names, st.sampled_from(["direct", "fanout", "topic"])),
    st.builds(Undeclare, exchanges),
    st.builds(Bind, exchanges, streams, keys, orders),
    st.builds(Unbind, exchanges, streams, keys, orders),
)


class TopologyLife(RuleBasedStateMachine):
    """A broker and its model, with few names."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="hutch-test-"))
        self.models = [Model()]
        self.links: list[LinkRig] = []

    @initialize()
    def begin(self) -> None:
        self.broker = Broker(self.directory)

    def start(self, operation: Operation) -> list[int]:
        """Begin an operation; the list gets its code."""
        codes: list[int] = []
        wire: dict[type, Callable[[Any], tuple[str, m.Message]]] = {
            Create: lambda it: ("create_stream", m.CreateStream(it.name, {})),
            Delete: lambda it: ("delete_stream", m.DeleteStream(it.name)),
            CreateSuper: lambda it: (
                "create_super_stream",
                m.CreateSuperStream(it.name, it.partitions, it.keys, {}),
            ),
            DeleteSuper: lambda it: ("delete_super_stream", m.DeleteSuperStream(it.name)),
        }
        host = self.broker.virtual_host
        if type(operation) in wire:
            link = self.broker.link()
            command, message = wire[type(operation)](operation)

            def answered(frame: bytes) -> None:
                codes.append(int.from_bytes(frame[12:14]))

            link.ports.send = answered  # type: ignore[method-assign]
            link.start(command, message)
            self.links.append(link)
            return codes
        inside: dict[type, Callable[[Any], Coroutine[Any, Any, object]]] = {
            Add: lambda it: super_streams.add_partitions(
                host, it.name, it.partitions, it.partitions
            ),
            Declare: lambda it: host.exchanges.declare(exchange_of(it)),
            Undeclare: lambda it: host.exchanges.delete(it.name),
            Bind: lambda it: host.exchanges.bind(it.binding),
            Unbind: lambda it: host.exchanges.unbind(it.binding),
        }

        def done(outcome: object) -> None:
            code = code_of(outcome) if isinstance(outcome, BaseException) else OK
            assert code is not None, outcome
            codes.append(code)

        run(inside[type(operation)](operation), done)
        return codes

    @rule(operation=operations)
    def do(self, operation: Operation) -> None:
        self.do_at_once([operation])

    @rule(together=st.lists(operations, min_size=2, max_size=4))
    def do_at_once(self, together: Sequence[Operation]) -> None:
        self.links.clear()
        started = [self.start(each) for each in together]
        self.broker.loop.run_until(lambda: self.have_ended(started))
        codes = [codes[0] for codes in started]
        assert all(len(each) == 1 for each in started)
        self.models = [
            after for before in self.models for after in self.outcomes(before, together, codes)
        ]
        self.models = [each for each in self.models if self.fits(each)]
        assert self.models, (together, codes)
        self.models = self.models[:1]

    def have_ended(self, started: Sequence[Sequence[int]]) -> bool:
        """Tell if all operations have; a slow one waits while others have a turn."""
        for link in self.links:
            link.ports.end_turns()
        return all(started)

    def outcomes(
        self, before: Model, together: Sequence[Operation], codes: Sequence[int]
    ) -> list[Model]:
        """Return what the orders give in which the operations have these codes."""
        found: list[Model] = []
        for order in permutations(range(len(together))):
            model = before
            for index in order:
                model, code = model.after(together[index])
                if code != codes[index]:
                    break
            else:
                found.append(model)
        return found

    @rule(operation=operations, change_count=st.integers(0, 8))
    def die_and_come_back(self, operation: Operation, change_count: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            die_after(self.broker, patch, change_count)
            self.start(operation)
            self.broker.loop.run_for(0.01)
        self.broker.close()
        self.broker = Broker(self.directory)
        before = self.models[0]
        self.models = [each for each in (before, before.after(operation)[0]) if self.fits(each)]
        assert self.models, operation
        self.models = self.models[:1]

    @rule()
    def stop_and_come_back(self) -> None:
        self.broker.stop()
        self.broker = Broker(self.directory)

    def fits(self, model: Model) -> bool:
        """Whether the broker is as a model says."""
        host = self.broker.virtual_host
        client = self.broker.link()
        if {stream.name for stream in host.streams} != set(model.streams):
            return False
        for name in EXCHANGES:
            answer = client.ask(m.StreamsReply, "partitions", m.Partitions(name))
            if (answer.code, answer.streams) != model.partitions(name):
                return False
            for key in KEYS[:2]:
                answer = client.ask(m.StreamsReply, "route", m.Route(key, name))
                if (answer.code, answer.streams) != model.route(name, key):
                    return False
        return True

    @invariant()
    def nothing_is_left_over(self) -> None:
        if not hasattr(self, "broker"):
            return
        model = self.models[0]
        assert self.fits(model)
        assert sorted(catalogued(self.broker)) == sorted(
            (name, self.broker.stream(name).entry.generation, "live") for name in model.streams
        )
        assert rows(self.broker) == len(model.exchanges) - 1 + len(model.bindings)
        assert len(self.broker.streams.locks) == len(self.broker.virtual_host.exchanges.locks) == 0
        assert self.broker.fatal_errors == []

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
        shutil.rmtree(self.directory)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_whatever_is_done_is_what_some_order_of_it_would_have_done() -> None:
    case = TopologyLife.TestCase
    case.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
    case().runTest()
