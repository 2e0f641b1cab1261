"""Calls about the times that writers tell."""

from typing import Final

from gateway.pravega.controller.errors import NoSuchScope, NoSuchStream, NoSuchWriter
from gateway.pravega.controller.proto import controller_pb2 as pb
from gateway.pravega.controller.rpc.desk import Desk
from gateway.pravega.controller.times.writers import Told

_ANSWERS: Final = {
    Told.TAKEN: pb.TimestampResponse.SUCCESS,
    Told.INVALID_TIME: pb.TimestampResponse.INVALID_TIME,
    Told.INVALID_POSITION: pb.TimestampResponse.INVALID_POSITION,
}


async def note_timestamp(desk: Desk, request: pb.TimestampFromWriter) -> pb.TimestampResponse:
    """Keep what a writer tells of its time."""
    of, position = request.position.streamInfo, request.position.cut
    async with desk.controller.hold(of.scope):
        stream = desk.controller.registry.stream(of.scope, of.stream)
        told = await desk.controller.times.tell(stream, request.writer, request.timestamp, position)
    return pb.TimestampResponse(result=_ANSWERS[told])


async def remove_writer(desk: Desk, request: pb.RemoveWriterRequest) -> pb.RemoveWriterResponse:
    """Wait for the times of a writer no more."""
    of, result = request.stream, pb.RemoveWriterResponse.SUCCESS
    try:
        async with desk.controller.hold(of.scope):
            stream = desk.controller.registry.stream(of.scope, of.stream)
            await desk.controller.times.end(stream, request.writer)
    except (NoSuchScope, NoSuchStream, NoSuchWriter):
        result = pb.RemoveWriterResponse.UNKNOWN_WRITER
    return pb.RemoveWriterResponse(result=result)
