"""Calls about scopes, and lists of streams."""

from collections.abc import Awaitable, Callable

from gateway.pravega.controller.errors import BadName, NoSuchScope, ScopeExists, ScopeNotEmpty
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.readers.marks import Shown
from gateway.pravega.controller.rpc.desk import Desk, info, page


async def create_scope(desk: Desk, request: pb.ScopeInfo) -> pb.CreateScopeStatus:
    """Create a scope."""
    status = pb.CreateScopeStatus.SUCCESS
    try:
        async with desk.controller.hold(request.scope):
            await desk.controller.streams.create_scope(request.scope)
    except ScopeExists:
        status = pb.CreateScopeStatus.SCOPE_EXISTS
    except BadName:
        status = pb.CreateScopeStatus.INVALID_SCOPE_NAME
    return pb.CreateScopeStatus(status=status)


async def delete_scope(desk: Desk, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
    """Delete a scope that has no streams and no tables."""
    return await _deleted(desk, request.scope, desk.controller.streams.delete_scope)


async def delete_scope_recursive(desk: Desk, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
    """Delete a scope with all its streams and tables.

    One that is not there is gone, as with Pravega.
    """
    found = await _deleted(desk, request.scope, desk.controller.delete_all)
    if found.status == pb.DeleteScopeStatus.SCOPE_NOT_FOUND:
        found.status = pb.DeleteScopeStatus.SUCCESS
    return found


async def _deleted(
    desk: Desk, scope: str, delete: Callable[[str], Awaitable[object]]
) -> pb.DeleteScopeStatus:
    status = pb.DeleteScopeStatus.SUCCESS
    try:
        async with desk.controller.hold(scope):
            await delete(scope)
    except NoSuchScope:
        status = pb.DeleteScopeStatus.SCOPE_NOT_FOUND
    except ScopeNotEmpty:
        status = pb.DeleteScopeStatus.SCOPE_NOT_EMPTY
    return pb.DeleteScopeStatus(status=status)


async def check_scope_exists(desk: Desk, request: pb.ScopeInfo) -> pb.ExistsResponse:
    """Return whether a scope exists of which the caller may see something."""
    return pb.ExistsResponse(exists=await desk.sight.streams(request.scope) is not None)


async def list_scopes(desk: Desk, request: pb.ScopesRequest) -> pb.ScopesResponse:
    """List the scopes on which the caller has a right."""
    scopes = desk.controller.registry.scopes
    names, token = await page(scopes, request.continuationToken.token, desk.sight.has_right)
    return pb.ScopesResponse(scopes=names, continuationToken=token)


async def list_streams(desk: Desk, request: pb.StreamsInScopeRequest) -> pb.StreamsInScopeResponse:
    """List the streams of a scope."""
    return await _listed(desk, request.scope.scope, request.continuationToken.token, "")


async def list_streams_for_tag(
    desk: Desk, request: pb.StreamsInScopeWithTagRequest
) -> pb.StreamsInScopeResponse:
    """List the streams of a scope that have a tag."""
    return await _listed(desk, request.scope.scope, request.continuationToken.token, request.tag)


async def _listed(desk: Desk, scope: str, token: str, tag: str) -> pb.StreamsInScopeResponse:
    streams = await desk.sight.streams(scope)
    if streams is None:
        return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)

    def is_wanted(name: str) -> bool:
        has_tag = not tag or (name in streams and tag in streams[name].policy.tags)
        return has_tag and desk.sight.may_read(scope, name)

    names, after = await page(Shown(streams), token, is_wanted)
    return pb.StreamsInScopeResponse(
        streams=[info(scope, name) for name in names], continuationToken=after
    )
