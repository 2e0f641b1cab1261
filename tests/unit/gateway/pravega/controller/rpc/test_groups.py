"""Calls about groups of readers: how they are configured, and the streams that wait for them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.broker.access.model import Right
from gateway.pravega.controller.errors import InvalidRequest, NoRight, NoSuchScope
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc import groups as calls
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.rpc.call_rig import OF, Of, Only, make_stream

IDENTITY = str(UUID(int=7))
ANOTHER = str(UUID(int=8))
CREATED = pb.CreateReaderGroupResponse
UPDATED = pb.UpdateReaderGroupResponse
DELETED = pb.DeleteReaderGroupStatus
GIVEN_UP = pb.UpdateSubscriberStatus
OTHER = pb.StreamInfo(scope="scope", stream="other")


def group(**given: Any) -> pb.ReaderGroupConfiguration:  # noqa: ANN401 - fields of any kind
    fields: dict[str, Any] = {
        "scope": "scope",
        "readerGroupName": "group",
        "readerGroupId": IDENTITY,
        "retentionType": 1,
        "groupRefreshTimeMillis": 100,
        "automaticCheckpointIntervalMillis": -1,
        "maxOutstandingCheckpointRequest": 3,
        "startingStreamCuts": [pb.StreamCut(streamInfo=OF, cut={0: 1, 1: 2})],
        "endingStreamCuts": [pb.StreamCut(streamInfo=OF, cut={0: 7, 1: 8})],
        "rolloverSizeBytes": 1_000,
    }
    return pb.ReaderGroupConfiguration(**fields | given)


def named(
    name: str = "group", scope: str = "scope", identity: str = IDENTITY
) -> pb.ReaderGroupInfo:
    return pb.ReaderGroupInfo(scope=scope, readerGroup=name, readerGroupId=identity)


async def created(
    context: CallContext, wanted: pb.ReaderGroupConfiguration
) -> pb.CreateReaderGroupResponse:
    return await awaited(calls.create_reader_group(context, wanted))


async def updated(context: CallContext, wanted: pb.ReaderGroupConfiguration) -> tuple[int, int]:
    answer = await awaited(calls.update_reader_group(context, wanted))
    return answer.status, answer.generation


async def configured(
    context: CallContext, of: pb.ReaderGroupInfo | None = None
) -> pb.ReaderGroupConfigResponse:
    return await awaited(calls.get_reader_group_config(context, of or named()))


async def subscribers(context: CallContext, of: pb.StreamInfo = OF) -> list[str]:
    answer = await awaited(calls.list_subscribers(context, of))
    assert answer.status == pb.SubscribersResponse.SUCCESS
    return list(answer.subscribers)


async def given_up(context: CallContext, cut: dict[int, int], **given: Any) -> int:  # noqa: ANN401
    fields: dict[str, Any] = {
        "subscriber": "scope/group",
        "readerGroupId": IDENTITY,
        "generation": 0,
        "streamCut": pb.StreamCut(streamInfo=given.pop("of", OF), cut=cut),
    }
    request = pb.SubscriberStreamCut(**fields | given)
    return (await awaited(calls.update_subscriber_cut(context, request))).status


@pytest.fixture
async def ready(context: CallContext) -> CallContext:
    """A caller that may do everything, and a stream with a group that it waits for."""
    await make_stream(context)
    answer = await created(context, group())
    assert answer.status == CREATED.SUCCESS
    return context


# How it is configured


async def test_a_group_is_as_it_was_configured_also_when_it_is_made_again(
    ready: CallContext,
) -> None:
    assert (await configured(ready)).config == group()
    again = await created(ready, group(groupRefreshTimeMillis=5, readerGroupId=ANOTHER))
    assert (again.status, again.config) == (CREATED.SUCCESS, group())


async def test_a_group_without_an_identity_is_given_one(context: CallContext) -> None:
    await make_stream(context)
    identities = set()
    for number, identity in enumerate(("", str(UUID(int=0)), ANOTHER)):
        wanted = group(readerGroupName=f"g{number}", readerGroupId=identity)
        identities.add((await created(context, wanted)).config.readerGroupId)

    assert ANOTHER in identities
    assert len(identities) == 3
    assert all(UUID(each).int for each in identities)


async def test_a_group_is_not_made_in_a_scope_that_is_not_there_or_by_a_name_that_cannot_be(
    context: CallContext,
) -> None:
    await make_stream(context)
    assert (await created(context, group(scope="nowhere"))).status == CREATED.SCOPE_NOT_FOUND
    wrong = group(readerGroupName="a/b")
    assert (await created(context, wrong)).status == CREATED.INVALID_RG_NAME


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"readerGroupId": "seven"}, "'seven' is no id"),
        ({"retentionType": 3}, "no retention 3"),
        ({"retentionType": -1}, "no retention -1"),
        (
            {"startingStreamCuts": [pb.StreamCut(streamInfo=pb.StreamInfo(scope="scope"))]},
            "names a stream that cannot be",
        ),
        (
            {
                "endingStreamCuts": [
                    pb.StreamCut(streamInfo=pb.StreamInfo(scope="a/b", stream="stream"))
                ]
            },
            "names a stream that cannot be",
        ),
    ],
)
async def test_what_cannot_be_configured_is_refused_with_its_reason(
    ready: CallContext, wrong: dict[str, Any], reason: str
) -> None:
    for call in (calls.create_reader_group, calls.update_reader_group):
        with pytest.raises(InvalidRequest, match=reason):
            await awaited(call(ready, group(**wrong)))
    assert (await configured(ready)).config == group()


async def test_a_group_reads_streams_that_its_caller_may_read(
    ready: CallContext, context_of: Of
) -> None:
    names = ("scope/stream", "scope/other")
    reader = context_of(Only(Right.READ, names=names))
    writer = context_of(Only(Right.WRITE, names=names))
    wanted = group(endingStreamCuts=[pb.StreamCut(streamInfo=OTHER)])

    for caller, name in (
        (writer, "stream"),
        (context_of(Only(Right.READ, names=names[:1])), "other"),
    ):
        for call in (calls.create_reader_group, calls.update_reader_group):
            with pytest.raises(NoRight, match=f"no right to read scope/{name}"):
                await awaited(call(caller, wanted))
    assert await updated(reader, wanted) == (UPDATED.SUCCESS, 1)
    assert (await configured(ready)).config.endingStreamCuts == wanted.endingStreamCuts


async def test_a_group_is_configured_anew_from_the_generation_that_it_has(
    ready: CallContext,
) -> None:
    changed = group(groupRefreshTimeMillis=5)
    assert await updated(ready, changed) == (UPDATED.SUCCESS, 1)
    changed.generation = 1
    assert (await configured(ready)).config == changed

    assert await updated(ready, group()) == (UPDATED.INVALID_CONFIG, 0)
    other = group(readerGroupId=ANOTHER, generation=1)
    assert await updated(ready, other) == (UPDATED.INVALID_CONFIG, 1)
    missing = group(readerGroupName="none", generation=5)
    assert await updated(ready, missing) == (UPDATED.RG_NOT_FOUND, 5)
    assert (await configured(ready)).config == changed


async def test_a_group_is_deleted_under_its_identity_with_the_stream_of_its_state(
    ready: CallContext, world: World
) -> None:
    async def deleted(of: pb.ReaderGroupInfo) -> int:
        return (await awaited(calls.delete_reader_group(ready, of))).status

    assert await deleted(named(identity=ANOTHER)) == DELETED.RG_NOT_FOUND
    assert await deleted(named("none")) == DELETED.RG_NOT_FOUND
    assert any("_RGgroup" in name for name in world.segments())

    assert await deleted(named()) == DELETED.SUCCESS

    assert not any("_RGgroup" in name for name in world.segments())
    assert await deleted(named()) == DELETED.RG_NOT_FOUND
    missing = (await configured(ready)).status
    assert missing == pb.ReaderGroupConfigResponse.RG_NOT_FOUND
    with pytest.raises(NoSuchScope):
        await configured(ready, named(scope="nowhere"))


# Streams that wait for it


async def test_the_groups_are_listed_that_a_stream_waits_for(ready: CallContext) -> None:
    await make_stream(ready, OTHER)
    await created(ready, group(readerGroupName="free", retentionType=0))
    await created(ready, group(readerGroupName="second", retentionType=2))

    assert sorted(await subscribers(ready)) == ["scope/group", "scope/second"]
    assert await subscribers(ready, OTHER) == []
    missing = pb.StreamInfo(scope="scope", stream="none")
    answer = await awaited(calls.list_subscribers(ready, missing))
    assert answer.status == pb.SubscribersResponse.STREAM_NOT_FOUND


async def test_what_a_group_gives_up_is_noted_as_a_cut_of_a_stream_that_waits_for_it(
    ready: CallContext, world: World
) -> None:
    await make_stream(ready, OTHER)
    cut = {0: 3, 1: 4}

    assert await given_up(ready, cut) == GIVEN_UP.SUCCESS

    def noted() -> dict[str, dict[int, int]]:
        found = world.controller.groups.find("scope", "group")
        return {stream: dict(each) for stream, each in found.cuts.items()}

    assert noted() == {"scope/stream": cut}
    none = pb.StreamInfo(scope="scope", stream="none")
    for status, given in (
        (GIVEN_UP.STREAM_NOT_FOUND, {"of": none}),
        (GIVEN_UP.SUBSCRIBER_NOT_FOUND, {"of": OTHER}),
        (GIVEN_UP.SUBSCRIBER_NOT_FOUND, {"subscriber": "scope/none"}),
        (GIVEN_UP.SUBSCRIBER_NOT_FOUND, {"subscriber": "nowhere/group"}),
        (GIVEN_UP.SUBSCRIBER_NOT_FOUND, {"readerGroupId": ANOTHER}),
        (GIVEN_UP.GENERATION_MISMATCH, {"generation": 1}),
    ):
        assert await given_up(ready, {0: 9, 1: 9}, **given) == status, given
    for wrong in ({0: 9}, {0: 2, 1: 4}, {0: -2, 1: 9}):
        assert await given_up(ready, wrong) == GIVEN_UP.STREAM_CUT_NOT_VALID, wrong
    assert noted() == {"scope/stream": cut}
