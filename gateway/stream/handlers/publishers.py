"""Declaring and deleting publishers, and their last publishing ids; publishing is elsewhere.

Source: RabbitMQ stream protocol; order of checks and codes as observed on RabbitMQ 4.3.
"""

from gateway.log.log import StreamLog
from gateway.log.ports import when_all_committed
from gateway.stream.handlers.streams import OK
from gateway.stream.link import IDS_MAX, Link
from gateway.stream.publishing import Publisher
from gateway.stream.refusals import Refusal
from hutch.formats.chunk import OFFSETS_END
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import Permission

REFERENCE_BYTES_MAX = 255


def size_of(reference: str) -> int:
    """Return the size of a reference in bytes, as it came over the wire."""
    return len(reference.encode("utf-8", "surrogateescape"))


async def declare_publisher(link: Link, request: m.DeclarePublisher) -> m.Status:
    """Return a publisher its id on this connection; with a reference, duplicates are dropped."""
    _require_disk(link)
    if len(link.publishers) >= IDS_MAX:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "256 publishers on this connection")
    if size_of(request.reference) > REFERENCE_BYTES_MAX:
        link.require(Permission.WRITE, request.stream)
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the reference is above 255 bytes")
    link.require(Permission.WRITE, request.stream)
    slot = (request.stream, request.reference)
    if request.publisher_id in link.publishers:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the publisher id is in use")
    if request.reference and slot in link.references:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the reference is declared already")
    stream = link.streams.find(request.stream)
    stream_log = await link.streams.logs.of(stream)
    if stream_log.read_only is not None:
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(stream_log.read_only))
    _require_publishing_ids(stream_log, request.reference)
    if stream_log.committed_next_offset >= OFFSETS_END:
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, "the stream has no offsets left")
    # The alarm may have been set meanwhile, or the right taken away.
    _require_disk(link)
    link.require(Permission.WRITE, request.stream)
    link.watch(stream)
    publisher = Publisher(
        request.publisher_id,
        request.reference,
        stream,
        stream_log,
        link.ports,
        frame_bytes_max=link.session.frame_limit,
        uncompressed_max=link.host.settings.sub_batch_uncompressed_bytes_max,
    )
    link.publishers[request.publisher_id] = publisher
    if request.reference:
        link.references.add(slot)
    return OK


def _require_disk(link: Link) -> None:
    """Demand that the disk has room for publishers. Raises Refusal."""
    if not link.host.service.takes_publishers:
        raise Refusal(ResponseCode.PRECONDITION_FAILED, "the disk alarm is set")


def _require_publishing_ids(stream_log: StreamLog, reference: str) -> None:
    """Demand that the last id of a publisher is known, if it has a name. Raises Refusal."""
    if reference and stream_log.sequences.damaged:
        raise Refusal(ResponseCode.INTERNAL_ERROR, "what is stored of publishing ids is damaged")


async def delete_publisher(link: Link, request: m.DeletePublisher) -> m.Status:
    """Forget a publisher; confirms that it still waits for are dropped."""
    publisher = link.publishers.get(request.publisher_id)
    if publisher is None:
        raise Refusal(ResponseCode.PUBLISHER_DOES_NOT_EXIST)
    link.drop_publisher(publisher)
    link.unwatch_if_unused(publisher.stream)
    return OK


async def query_publisher_sequence(
    link: Link, request: m.QueryPublisherSequence
) -> m.PublisherSequence:
    """Return the last stored publishing id of a reference, 0 if it has none."""
    link.require(Permission.READ, request.stream)
    stream_log = await link.streams.logs.of(link.streams.find(request.stream))
    await when_all_committed(stream_log)
    if stream_log.failure is not None:
        raise Refusal(ResponseCode.STREAM_NOT_AVAILABLE, str(stream_log.failure))
    _require_publishing_ids(stream_log, request.reference)
    reference = request.reference.encode("utf-8", "surrogateescape")
    last = stream_log.sequences.last(reference) if reference else None
    return m.PublisherSequence(ResponseCode.OK, last or 0)
