"""Calls about transactions."""

from typing import Final, cast

from gateway.pravega.controller.errors import (
    InvalidRequest,
    NoSuchScope,
    NoSuchStream,
    NoSuchTransaction,
)
from gateway.pravega.controller.records.model import TransactionRecord, TransactionState
from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.controller.rpc.call_context import CallContext, ranges

LEASE_MS_MIN: Final = 10_000
LEASE_MS_MAX: Final = 600_000
"""Bounds of Pravega's."""
LISTED_MAX: Final = 500
_HALF: Final = 64
_NO_TIME: Final = -(1 << 63)
_HALF_MASK: Final = (1 << _HALF) - 1


async def create_transaction(
    context: CallContext, request: pb.CreateTxnRequest
) -> pb.CreateTxnResponse:
    """Begin a transaction; answer its id and the segments that it writes beside."""
    of = request.streamInfo
    if not LEASE_MS_MIN <= request.lease <= LEASE_MS_MAX:
        bounds = f"{LEASE_MS_MIN} … {LEASE_MS_MAX}"
        raise InvalidRequest(f"a lease of {request.lease} ms: {bounds} are possible")
    async with context.controller.hold(of.scope):
        transaction, segments = await context.controller.transactions.create(
            of.scope, of.stream, request.lease, context.caller.name
        )
    return pb.CreateTxnResponse(
        txnId=_txn_id(transaction.identity),
        activeSegments=ranges(of, segments),
        delegationToken=context.token(context.caller, of.scope, of.stream),
    )


async def ping_transaction(context: CallContext, request: pb.PingTxnRequest) -> pb.PingTxnStatus:
    """Let a transaction's lease begin anew."""
    if not 0 < request.lease <= LEASE_MS_MAX:
        return pb.PingTxnStatus(status=pb.PingTxnStatus.LEASE_TOO_LARGE)
    of = request.streamInfo
    transactions = context.controller.transactions
    try:
        found = transactions.find(of.scope, of.stream, _identity(request.txnId))
    except NoSuchTransaction:
        return pb.PingTxnStatus(status=pb.PingTxnStatus.UNKNOWN)
    match found.state:
        case TransactionState.OPEN:
            transactions.renew(found, request.lease)
            status = pb.PingTxnStatus.OK
        case TransactionState.COMMITTING | TransactionState.COMMITTED:
            status = pb.PingTxnStatus.COMMITTED
        case _:
            status = pb.PingTxnStatus.ABORTED
    return pb.PingTxnStatus(status=status)


async def commit_transaction(context: CallContext, request: pb.TxnRequest) -> pb.TxnStatus:
    """Take the writes of a transaction into its stream."""
    return await _ended(context, request, is_commit=True)


async def abort_transaction(context: CallContext, request: pb.TxnRequest) -> pb.TxnStatus:
    """Throw away the writes of a transaction."""
    return await _ended(context, request, is_commit=False)


async def check_transaction_state(context: CallContext, request: pb.TxnRequest) -> pb.TxnState:
    """Return the state of a transaction."""
    of = request.streamInfo
    try:
        found = context.controller.transactions.find(of.scope, of.stream, _identity(request.txnId))
    except NoSuchTransaction:
        return pb.TxnState(state=pb.TxnState.UNKNOWN)
    return pb.TxnState(state=cast(pb.TxnState.State, int(found.state)))


async def list_completed_transactions(
    context: CallContext, request: pb.ListCompletedTxnRequest
) -> pb.ListCompletedTxnResponse:
    """List the transactions that ended last, as they began; none of a stream that is not there."""
    try:
        of = request.streamInfo
        stream = context.controller.registry.stream(of.scope, of.stream)
    except (NoSuchScope, NoSuchStream):
        return pb.ListCompletedTxnResponse()
    known = context.controller.registry.transactions_of(stream)
    over = [each for each in known if each.state.is_over]
    latest = {each.identity for each in sorted(over, key=_ended_ms)[-LISTED_MAX:]}
    return pb.ListCompletedTxnResponse(
        response=[
            pb.TxnResponse(
                txnId=_txn_id(each.identity),
                status=pb.TxnResponse.COMMITTED
                if each.state is TransactionState.COMMITTED
                else pb.TxnResponse.ABORTED,
            )
            for each in over
            if each.identity in latest
        ]
    )


def _ended_ms(transaction: TransactionRecord) -> int:
    return transaction.ended_ms


async def _ended(context: CallContext, request: pb.TxnRequest, *, is_commit: bool) -> pb.TxnStatus:
    of = request.streamInfo
    transactions = context.controller.transactions
    end = transactions.commit if is_commit else transactions.abort
    try:
        async with context.controller.hold(of.scope):
            context.controller.registry.stream(of.scope, of.stream)
            is_done = await end(of.scope, of.stream, _identity(request.txnId))
            if is_commit and is_done and request.writerId and request.timestamp != _NO_TIME:
                stream = context.controller.registry.stream(of.scope, of.stream)
                await context.controller.times.tell_committed(
                    stream, request.writerId, request.timestamp
                )
    except (NoSuchScope, NoSuchStream):
        return pb.TxnStatus(status=pb.TxnStatus.STREAM_NOT_FOUND)
    except NoSuchTransaction:
        return pb.TxnStatus(status=pb.TxnStatus.TRANSACTION_NOT_FOUND)
    return pb.TxnStatus(status=pb.TxnStatus.SUCCESS if is_done else pb.TxnStatus.FAILURE)


def _identity(of: pb.TxnId) -> int:
    return (of.highBits & _HALF_MASK) << _HALF | of.lowBits & _HALF_MASK


def _txn_id(identity: int) -> pb.TxnId:
    return pb.TxnId(highBits=_signed(identity >> _HALF), lowBits=_signed(identity & _HALF_MASK))


def _signed(half: int) -> int:
    return half - (1 << _HALF) if half >> (_HALF - 1) else half
