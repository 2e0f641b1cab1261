"""Decode, is it legal, handler, reply: in this order, for every command."""

from collections.abc import Iterable

import pytest

from gateway.broker.access.access import Demand
from gateway.broker.errors import (
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
    StreamExists,
    StreamNotAvailable,
)
from gateway.pending import Pending
from gateway.stream import dispatch as dispatch_module
from gateway.stream.handlers.table import HANDLERS
from gateway.stream.link import RIGHTS, Link
from gateway.stream.refusals import Refusal
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream import pipeline as p
from hutch.stream.codec import encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import CLIENT, COMMANDS, Permission
from hutch.stream.errors import MalformedFrame, UnexpectedCommand, UnknownCommand
from hutch.stream.offsets import FIRST
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

REQUESTS: dict[str, m.Message] = {
    "declare_publisher": m.DeclarePublisher(1, "", "s"),
    "query_publisher_sequence": m.QueryPublisherSequence("ref", "s"),
    "subscribe": m.Subscribe(1, "s", FIRST, 1, {}),
    "store_offset": m.StoreOffset("ref", "s", 1),
    "query_offset": m.QueryOffset("ref", "s"),
    "create_stream": m.CreateStream("s", {}),
    "delete_stream": m.DeleteStream("s"),
    "metadata": m.Metadata(("s",)),
    "route": m.Route("key", "s"),
    "partitions": m.Partitions("s"),
    "stream_stats": m.StreamStats("s"),
    "create_super_stream": m.CreateSuperStream("s", ("s-0",), ("0",), {}),
    "delete_super_stream": m.DeleteSuperStream("s"),
    "resolve_offset_spec": m.ResolveOffsetSpec("s", FIRST, {}),
}
"""One for every command that needs a permission on what it names."""


def patch_handler(monkeypatch: pytest.MonkeyPatch, name: str, outcome: object) -> list[m.Message]:
    """Let a command's handler return, raise or await this; gives what it was called with."""
    requests: list[m.Message] = []

    async def handler(_link: Link, request: m.Message) -> m.Message | None:
        requests.append(request)
        result = await outcome if isinstance(outcome, Pending) else outcome
        if isinstance(result, Exception):
            raise result
        assert result is None or isinstance(result, m.Message)
        return result

    monkeypatch.setattr(dispatch_module, "HANDLERS", {**HANDLERS, name: handler})
    return requests


# The two lists of commands


def test_every_command_of_a_client_has_a_handler_and_nothing_else_has() -> None:
    commands = pipeline.TABLE.commands
    from_client = {command.name for command in commands if CLIENT in command.sender}

    assert set(HANDLERS) == from_client - {"publish"} | {"consumer_update"}


def test_no_two_commands_share_a_handler() -> None:
    assert len(set(HANDLERS.values())) == len(HANDLERS)


# Permissions


class Asked:
    """Takes the place of `Visit.refused` and remembers; refuses what it is told to."""

    def __init__(self, client: LinkRig, refused: Permission | None = None) -> None:
        self.calls: list[Demand] = []
        self._refused = None if refused is None else RIGHTS[refused]
        client.link.refused = self  # type: ignore[method-assign]  # a test's stand-in

    def __call__(self, demands: Iterable[Demand]) -> Demand | None:
        for demand in demands:
            self.calls.append(demand)
            if demand.rights == self._refused:
                return demand
        return None


def first_of(permission: Permission) -> Permission:
    """What is asked first: managing a super stream takes several permissions."""
    is_several = permission is Permission.MANAGE_SUPER_STREAM
    return Permission.CONFIGURE if is_several else permission


def test_a_request_is_here_for_every_row_with_a_permission() -> None:
    rows = {row.name for row in COMMANDS if row.permission is not Permission.NONE}

    assert rows - {"open"} == set(REQUESTS)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_permission_of_a_row_is_asked_for_on_what_it_names(client: LinkRig, name: str) -> None:
    (row,) = [row for row in COMMANDS if row.name == name]
    asked = Asked(client)

    client.tell(name, REQUESTS[name])

    assert asked.calls[0] == Demand(RIGHTS[first_of(row.permission)], "s")


@pytest.mark.parametrize(
    "name", [name for name in REQUESTS if name not in ("metadata", "store_offset")]
)
def test_without_the_permission_nothing_is_done_and_the_code_is_16(
    client: LinkRig, name: str
) -> None:
    (row,) = [row for row in COMMANDS if row.name == name]
    Asked(client, refused=first_of(row.permission))

    assert client.code(name, REQUESTS[name]) == ResponseCode.ACCESS_REFUSED

    assert not client.link.publishers
    assert not client.link.subscriptions
    assert not client.broker.stream("s").watchers


def test_an_offset_that_may_not_be_stored_is_dropped_without_a_word(client: LinkRig) -> None:
    Asked(client, refused=Permission.READ)

    client.tell("store_offset", m.StoreOffset("ref", "s", 1))

    assert client.received() == []
    del client.link.refused
    answer = client.ask(m.StoredOffset, "query_offset", m.QueryOffset("ref", "s"))
    assert answer.code == ResponseCode.NO_OFFSET


# Order


def test_a_frame_that_is_no_command_is_never_handled(client: LinkRig) -> None:
    with pytest.raises(UnknownCommand):
        client.start_frame(bytes.fromhex("00ff 0001 00000000"))
    with pytest.raises(MalformedFrame):
        client.start_frame(bytes.fromhex("000e 0001 00000000 0005 73"))

    assert client.received() == []


def test_a_command_that_is_not_legal_now_is_not_handled(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = broker.link(is_open=False)
    requests = patch_handler(monkeypatch, "create_stream", m.Status(ResponseCode.OK))

    with pytest.raises(UnexpectedCommand):
        client.start("create_stream", m.CreateStream("s", {}))

    assert (requests, client.received()) == ([], [])


def test_a_step_out_of_order_is_answered_and_then_the_connection_ends(broker: Broker) -> None:
    client = broker.link(is_open=False)

    answer = client.request("sasl_handshake", m.SaslHandshake())

    assert isinstance(answer, m.SaslHandshakeReply)
    assert client.session.is_done


# Replies


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refusal(ResponseCode.NO_OFFSET), ResponseCode.NO_OFFSET),
        (StreamDoesNotExist("s"), ResponseCode.STREAM_DOES_NOT_EXIST),
        (StreamExists("s"), ResponseCode.STREAM_ALREADY_EXISTS),
        (StreamNotAvailable("s"), ResponseCode.STREAM_NOT_AVAILABLE),
        (PreconditionFailed("s"), ResponseCode.PRECONDITION_FAILED),
        (InternalError("s"), ResponseCode.INTERNAL_ERROR),
    ],
)
def test_a_refusal_becomes_the_code_of_the_reply_and_all_else_in_it_is_zero(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, error: Exception, code: ResponseCode
) -> None:
    patch_handler(monkeypatch, "query_offset", error)

    answer = client.request("query_offset", m.QueryOffset("ref", "s"))

    assert answer == m.StoredOffset(code, 0)


def test_an_error_of_ours_is_handed_on_and_nothing_is_answered(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = KeyError("our bug")
    patch_handler(monkeypatch, "query_offset", error)

    done = client.start("query_offset", m.QueryOffset("ref", "s"))

    assert done == [error]
    assert client.received() == []


def test_a_fault_of_the_peer_that_a_handler_finds_is_handed_on(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = MalformedFrame("worse than it looked", 3)
    patch_handler(monkeypatch, "query_offset", error)

    assert client.start("query_offset", m.QueryOffset("ref", "s")) == [error]
    assert client.received() == []


def test_a_handler_that_waits_is_answered_when_it_is_through(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome: Pending[m.Message] = Pending()
    patch_handler(monkeypatch, "query_offset", outcome)

    done = client.start("query_offset", m.QueryOffset("ref", "s"))
    assert (done, client.received()) == ([], [])
    outcome.settle(m.StoredOffset(ResponseCode.OK, 5))

    assert done == [None]
    assert client.answer_to("query_offset") == m.StoredOffset(ResponseCode.OK, 5)


def test_what_is_to_follow_the_reply_follows_it(client: LinkRig) -> None:
    client.link.after_reply(lambda: client.ports.send(b"\0\0\0\4\0\x17\0\1"))

    client.tell("query_offset", m.QueryOffset("ref", "s"))

    assert [each.command.name for each in client.received()] == ["query_offset", "heartbeat"]


def test_a_frame_is_copied_before_anything_waits(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = patch_handler(monkeypatch, "query_offset", m.StoredOffset(ResponseCode.OK, 5))
    request = m.QueryOffset("ref", "s")
    frame = bytearray(encode_request("query_offset", request, correlation_id=1)[4:])

    dispatch_module.dispatch(client.link, memoryview(frame), lambda _: None)
    frame[:] = bytes(len(frame))

    assert requests == [request]


# Commands of pipelines


def test_every_command_of_pipelines_with_a_permission_asks_for_it(broker: Broker) -> None:
    client = broker.link(has_pipeline=True)
    client.create("s")
    generation = broker.stream("s").entry.generation
    requests: dict[str, m.Message] = {
        "describe_streams": p.DescribeStreams(("s",), None),
        "plan_streams": p.PlanStreams((p.RangeToPlan("s", generation, 0, 1, 1),)),
        "open_stage": p.OpenStage("q", 1, "s"),
    }
    for name, request in requests.items():
        asked = Asked(client)
        client.tell(name, request)
        row = pipeline.TABLE.by_name[name]
        assert asked.calls[0] == Demand(RIGHTS[row.permission], "s")
