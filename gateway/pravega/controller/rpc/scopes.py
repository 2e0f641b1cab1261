"""Calls about scopes, and lists of streams."""

from collections.abc import Awaitable, Callable

from gateway.broker.access.model import Right
from gateway.pravega.controller.errors import BadName, NoSuchScope, ScopeExists, ScopeNotEmpty
from gateway.pravega.controller.model import Stream
from gateway.pravega.controller.proto import controller_pb2 as pb
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
    """Delete a scope that has no streams."""
    return await _deleted(desk, request.scope, desk.controller.streams.delete_scope)


async def delete_scope_recursive(desk: Desk, request: pb.ScopeInfo) -> pb.DeleteScopeStatus:
    """Delete a scope with all its streams."""
    return await _deleted(desk, request.scope, desk.controller.delete_all)


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
    scope = request.scope
    exists = scope in desk.controller.registry.scopes and (
        _sees(desk, scope) or bool(_seen_streams(desk, scope))
    )
    return pb.ExistsResponse(exists=exists)


async def list_scopes(desk: Desk, request: pb.ScopesRequest) -> pb.ScopesResponse:
    """List the scopes of which the caller may see something."""
    seen = [name for name in desk.controller.registry.scopes if _sees(desk, name)]
    names, token = page(seen, request.continuationToken.token)
    return pb.ScopesResponse(scopes=names, continuationToken=token)


def _sees(desk: Desk, scope: str) -> bool:
    """Return whether the caller has any right on a scope."""
    return any(desk.caller.may(right, scope, "") for right in Right)


def _seen_streams(desk: Desk, scope: str) -> list[Stream]:
    """Return the streams of a scope that the caller may read; none if there is no such scope."""
    try:
        streams = desk.controller.registry.streams(scope)
    except NoSuchScope:
        return []
    return [each for each in streams.values() if desk.caller.may(Right.READ, scope, each.name)]


async def list_streams(desk: Desk, request: pb.StreamsInScopeRequest) -> pb.StreamsInScopeResponse:
    """List the streams of a scope."""
    return _listed(desk, request.scope.scope, request.continuationToken.token, "")


async def list_streams_for_tag(
    desk: Desk, request: pb.StreamsInScopeWithTagRequest
) -> pb.StreamsInScopeResponse:
    """List the streams of a scope that have a tag."""
    return _listed(desk, request.scope.scope, request.continuationToken.token, request.tag)


def _listed(desk: Desk, scope: str, token: str, tag: str) -> pb.StreamsInScopeResponse:
    seen = _seen_streams(desk, scope)
    if not seen and not (scope in desk.controller.registry.scopes and _sees(desk, scope)):
        return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
    names, after = page((each.name for each in seen if not tag or tag in each.policy.tags), token)
    return pb.StreamsInScopeResponse(
        streams=[info(scope, name) for name in names], continuationToken=after
    )
