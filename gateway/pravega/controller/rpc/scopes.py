"""Calls about scopes, and lists of streams."""

from collections.abc import Awaitable, Callable

from gateway.pravega.controller.errors import BadName, NoSuchScope, ScopeExists, ScopeNotEmpty
from gateway.pravega.controller.rounds.marks import Shown
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, info, page


async def create_scope(context: CallContext, request: pb.ScopeInfo) -> pb.CreateScopeStatus:
    """Create a scope."""
    status = pb.CreateScopeStatus.SUCCESS
    try:
        async with context.controller.hold(request.scope):
            await context.controller.streams.create_scope(request.scope)
    except ScopeExists:
        status = pb.CreateScopeStatus.SCOPE_EXISTS
    except BadName:
        status = pb.CreateScopeStatus.INVALID_SCOPE_NAME
    return pb.CreateScopeStatus(status=status)


async def delete_scope(context: CallContext, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
    """Delete a scope that has no streams and no tables."""
    return await _deleted(context, request.scope, context.controller.streams.delete_scope)


async def delete_scope_recursive(
    context: CallContext, request: pb.ScopeInfo
) -> pb.DeleteScopeStatus:
    """Delete a scope with all its streams and tables.

    One that is not there is gone, as with Pravega.
    """
    found = await _deleted(context, request.scope, context.controller.delete_all)
    if found.status == pb.DeleteScopeStatus.SCOPE_NOT_FOUND:
        found.status = pb.DeleteScopeStatus.SUCCESS
    return found


async def _deleted(
    context: CallContext, scope: str, delete: Callable[[str], Awaitable[object]]
) -> pb.DeleteScopeStatus:
    status = pb.DeleteScopeStatus.SUCCESS
    try:
        async with context.controller.hold(scope):
            await delete(scope)
    except NoSuchScope:
        status = pb.DeleteScopeStatus.SCOPE_NOT_FOUND
    except ScopeNotEmpty:
        status = pb.DeleteScopeStatus.SCOPE_NOT_EMPTY
    return pb.DeleteScopeStatus(status=status)


async def check_scope_exists(context: CallContext, request: pb.ScopeInfo) -> pb.ExistsResponse:
    """Return whether a scope exists of which the caller may see something."""
    return pb.ExistsResponse(exists=await context.sight.streams(request.scope) is not None)


async def list_scopes(context: CallContext, request: pb.ScopesRequest) -> pb.ScopesResponse:
    """List the scopes on which the caller has a right."""
    scopes = context.controller.registry.scopes
    names, token = await page(scopes, request.continuationToken.token, context.sight.has_right)
    return pb.ScopesResponse(scopes=names, continuationToken=token)


async def list_streams(
    context: CallContext, request: pb.StreamsInScopeRequest
) -> pb.StreamsInScopeResponse:
    """List the streams of a scope."""
    return await _listed(context, request.scope.scope, request.continuationToken.token, "")


async def list_streams_for_tag(
    context: CallContext, request: pb.StreamsInScopeWithTagRequest
) -> pb.StreamsInScopeResponse:
    """List the streams of a scope that have a tag."""
    return await _listed(context, request.scope.scope, request.continuationToken.token, request.tag)


async def _listed(
    context: CallContext, scope: str, token: str, tag: str
) -> pb.StreamsInScopeResponse:
    streams = await context.sight.streams(scope)
    if streams is None:
        return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)

    def is_wanted(name: str) -> bool:
        has_tag = not tag or (name in streams and tag in streams[name].policy.tags)
        return has_tag and context.sight.may_read(scope, name)

    names, after = await page(Shown(streams), token, is_wanted)
    return pb.StreamsInScopeResponse(
        streams=[info(scope, name) for name in names], continuationToken=after
    )
