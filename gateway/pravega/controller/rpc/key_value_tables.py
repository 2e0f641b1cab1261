"""Calls about tables of keys and values."""

from gateway.pravega.controller.errors import BadName, NoSuchScope, NoSuchTable, TableExists
from gateway.pravega.controller.records.key_value_tables import KeyValueTable, TableConfig
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, info, page, ranges


async def create(
    context: CallContext, request: pb.KeyValueTableConfig
) -> pb.CreateKeyValueTableStatus:
    """Create a table and its parts."""
    status = pb.CreateKeyValueTableStatus.SUCCESS
    config = TableConfig(
        partitions=request.partitionCount,
        primary=request.primaryKeyLength,
        secondary=request.secondaryKeyLength,
        rollover_bytes=request.rolloverSizeBytes,
    )
    try:
        async with context.controller.hold(request.scope):
            await context.controller.tables.create(request.scope, request.kvtName, config)
    except TableExists:
        status = pb.CreateKeyValueTableStatus.TABLE_EXISTS
    except NoSuchScope:
        status = pb.CreateKeyValueTableStatus.SCOPE_NOT_FOUND
    except BadName:
        status = pb.CreateKeyValueTableStatus.INVALID_TABLE_NAME
    return pb.CreateKeyValueTableStatus(status=status)


async def delete(context: CallContext, request: pb.KeyValueTableInfo) -> pb.DeleteKVTableStatus:
    """Delete a table with all that it holds."""
    status = pb.DeleteKVTableStatus.SUCCESS
    try:
        async with context.controller.hold(request.scope):
            await context.controller.tables.delete(request.scope, request.kvtName)
    except NoSuchTable:
        status = pb.DeleteKVTableStatus.TABLE_NOT_FOUND
    return pb.DeleteKVTableStatus(status=status)


async def get_segments(context: CallContext, request: pb.KeyValueTableInfo) -> pb.SegmentRanges:
    """Return the parts of a table, with the keys of each."""
    table = await _settled(context, request)
    return pb.SegmentRanges(
        segmentRanges=ranges(info(table.scope, table.name), table.segments),
        delegationToken=context.token(context.caller, table.scope, table.name, has_table=True),
    )


async def get_configuration(
    context: CallContext, request: pb.KeyValueTableInfo
) -> pb.KeyValueTableConfigResponse:
    """Return a table's configuration."""
    try:
        table = await _settled(context, request)
    except NoSuchTable:
        status = pb.KeyValueTableConfigResponse.TABLE_NOT_FOUND
        return pb.KeyValueTableConfigResponse(status=status)
    config = table.config
    return pb.KeyValueTableConfigResponse(
        config=pb.KeyValueTableConfig(
            scope=table.scope,
            kvtName=table.name,
            partitionCount=config.partitions,
            primaryKeyLength=config.primary,
            secondaryKeyLength=config.secondary,
            rolloverSizeBytes=config.rollover_bytes,
        )
    )


async def list_tables(
    context: CallContext, request: pb.KVTablesInScopeRequest
) -> pb.KVTablesInScopeResponse:
    """List the tables of a scope that the caller may read."""
    scope = request.scope.scope
    if await context.sight.streams(scope) is None:
        return pb.KVTablesInScopeResponse(status=pb.KVTablesInScopeResponse.SCOPE_NOT_FOUND)
    names, token = await page(
        context.controller.registry.tables.of(scope),
        request.continuationToken.token,
        lambda name: context.sight.may_read_table(scope, name),
    )
    tables = [pb.KeyValueTableInfo(scope=scope, kvtName=name) for name in names]
    return pb.KVTablesInScopeResponse(kvtables=tables, continuationToken=token)


async def _settled(context: CallContext, request: pb.KeyValueTableInfo) -> KeyValueTable:
    async with context.controller.hold(request.scope):
        return await context.controller.tables.settled(request.scope, request.kvtName)
