"""What is fuzzed: functions that take any bytes, and may only return.

Each does with the bytes what the server does with those of somebody it does not trust, and compares
what comes of it with a slow model or with itself. What a peer may do wrong has an error of its own;
anything else that is raised is a finding.

`atheris` guides by the lines of Python that an input reaches. Compiled code has none, so the models
beside the kernels are what it is guided by.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from gateway.management.definitions.exporting import export_definitions
from gateway.management.definitions.planning import plan_import
from gateway.management.definitions.reading import read_definitions
from gateway.management.errors import DefinitionsError, WrongRequest
from gateway.management.kinds.kind import Definitions
from gateway.management.wire import read_head
from gateway.mewbase.binders.projection import checked
from gateway.mewbase.binders.projections_file import projection_of
from gateway.mewbase.documents import NoDocument
from gateway.mewbase.events import event_of, record_of
from gateway.mewbase.matcher import BadMatcher, Matcher
from gateway.mewbase.wire import reading
from gateway.mewbase.wire.errors import BadRequest, UnreadableFrame
from gateway.mewbase.wire.kernel.documents import is_document
from gateway.pravega.early.session import Conversation
from hutch.pravega import codec
from hutch.pravega.block import append_pieces
from hutch.pravega.early_block import Block
from hutch.pravega.early_codec import EARLY
from hutch.pravega.errors import WireError
from hutch.pravega.messages import AppendBlock, AppendBlockEnd
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import (
    Decoded,
    decode_reply,
    decode_request,
    encode_command,
    encode_reply,
    encode_request,
)
from hutch.stream.commands import STANDARD, CommandTable
from hutch.stream.errors import ProtocolError
from tests.fuzz.answers import fuzz_answers
from tests.property.gateway import chunk_model, publish_model
from tests.property.gateway.conversations import HANDSHAKE, PIPELINE_HANDSHAKE, frame_of
from tests.property.gateway.publish_calls import run
from tests.property.gateway.publish_model import Call
from tests.unit.gateway.server.connection_rig import Client, Server

Target = Callable[[bytes], None]

INPUT_BYTES_MAX: Final = 8192
"""Longer inputs reach nothing new, and the models take time that grows as the square."""
PUBLISH_HEAD_BYTES: Final = 10
_FRAME_HEAD_BYTES: Final = 13
"""Size, key, version, publisher and count."""
_CAPACITIES: Final = (1 << 14, 130, 200, 57)
_BSON: Final = CodecOptions[dict[str, object]](datetime_conversion=DatetimeConversion.DATETIME_MS)
_PROJECTION: Final = {"name": "p", "channel": "c", "binder": "b", "id": "id"}
_PROJECTIONS: Final = [
    projection_of(_PROJECTION | more)
    for more in (
        {},
        {"mode": "merge", "id": "id.id"},
        {"mode": "add", "path": "a.{id}.n", "quantity": "n"},
    )
]
_ENTRIES_MAX: Final = (65_535, 65_534, 3, 1)


def fuzz_frame(data: bytes) -> None:
    """A frame without its size, from either side: decoded, and the same when encoded again."""
    _recode(data, STANDARD)


def _recode(data: bytes, table: CommandTable) -> None:
    for decode, encode in ((decode_request, encode_request), (decode_reply, encode_command)):
        try:
            decoded = decode(data, table)
        except ProtocolError:
            continue
        assert decode(_encoded(encode, decoded)[4:], table) == decoded


def _encoded(encode: Callable[..., bytes], decoded: Decoded) -> bytes:
    name, version, is_response, correlation_id, message = decoded
    if is_response:
        return encode_reply(name, correlation_id, message)
    return encode(name, message, correlation_id=correlation_id, version=version)


def fuzz_publish(data: bytes) -> None:
    """Publish frames, and before them 10 bytes that say how the kernel is called."""
    head, source = data[:PUBLISH_HEAD_BYTES], data[PUBLISH_HEAD_BYTES:]
    if len(head) < PUBLISH_HEAD_BYTES:
        return
    flags, choice = head[0], head[1]
    is_filtered = bool(flags & 1)
    if is_filtered and len(source) < _FRAME_HEAD_BYTES:
        return
    capacity = _CAPACITIES[choice & 3]
    entries_max = _ENTRIES_MAX[choice >> 2 & 3]
    call = Call(
        source,
        position=_FRAME_HEAD_BYTES if is_filtered else 0,
        frame_end=len(source) if is_filtered else 0,
        frame_bytes_max=(1 << 20, 60)[choice >> 4 & 1],
        uncompressed_max=(64 << 20, 12)[choice >> 5 & 1],
        written=56 if entries_max == publish_model.ENTRIES_IN_EMPTY else 100,
        capacity=capacity,
        target_bytes=max(capacity, 100) + (0, 1 << 12)[choice >> 6 & 1],
        entries_max=entries_max,
        duplicates_max=(512, 1)[choice >> 7],
        is_named=bool(flags & 2),
        last=int.from_bytes(head[2:]) if flags & 4 else None,
        filtered=is_filtered,
    )
    assert run(_kernel("gateway.stream.kernel.publish"), call) == publish_model.take(call)


def fuzz_chunk(data: bytes) -> None:
    """Stored chunks, and before them a byte that says how much room they are joined into."""
    if not data:
        return
    capacity, source = (0, 60, 300, 1 << 14)[data[0] & 3], data[1:]
    kernel = _kernel("gateway.log.kernel.chunks")
    assert kernel.walk_chunks(source, 0, len(source)) == chunk_model.walk(source)
    assert kernel.verify_chunks(source, 0, len(source)) == chunk_model.verify(source)
    size, seed = len(source), chunk_model.SEED
    assert kernel.check_seals(source, 0, size, seed) == chunk_model.check_seals(source, seed)
    target = bytearray(b"\xa5" * (capacity + 16))
    joined = kernel.join_chunks(source, size, target, capacity, seed)
    expected, content = chunk_model.join(source, capacity)
    assert joined == expected
    assert target == content + b"\xa5" * (len(target) - len(content)), "it wrote elsewhere"


def _kernel(name: str) -> ModuleType:
    return importlib.import_module(name)


def fuzz_definitions(data: bytes) -> None:
    """A definitions file: refused with words, or exported and read again as the same."""
    try:
        read = read_definitions(data)
        plan_import(read, Definitions())
    except DefinitionsError:
        return
    tree, _ = export_definitions(read.definitions)
    again = read_definitions(json.dumps(tree).encode())
    assert again.definitions == read.definitions


def fuzz_request(data: bytes) -> None:
    """The line of a request to the admin socket."""
    try:
        head = read_head(data)
    except WrongRequest:
        return
    assert head.body_bytes >= 0


class _Neighbourhood:
    """A server without sockets that serves input after input, and a client that must not notice."""

    _INPUTS: Final = 200
    """A new server after so many: their streams and offsets add up."""

    def __init__(self, handshake: bytes) -> None:
        self._handshake = handshake
        self._numbers = itertools.count()
        self._directory = Path(tempfile.gettempdir())
        self._begin()

    def _begin(self) -> None:
        self._server = Server(self._directory, refusal_delay_ms=0)
        self._neighbour = self._server.connect()
        self._neighbour.send(HANDSHAKE)

    def take(self, data: bytes) -> None:
        if next(self._numbers) % self._INPUTS == self._INPUTS - 1:
            self._server.close()
            self._begin()
        is_open, pieces, conversation = data[0] & 1, data[0] >> 1, data[1:]
        client = self._server.connect()
        sizes = itertools.repeat(pieces) if pieces else ()
        client.feed((self._handshake if is_open else b"") + conversation, sizes)
        client.loop.run_all()
        client.received()
        assert not client.edge.is_aborted, "an end without FIN is an error of ours"
        self._require_neighbour()
        client.edge.abort()
        client.loop.run_all()
        link = client.link
        assert (link.publishers, link.subscriptions, link.references) == ({}, {}, set())

    def _require_neighbour(self) -> None:
        neighbour: Client = self._neighbour
        neighbour.received()
        neighbour.send(frame_of("metadata", m.Metadata(())))
        assert neighbour.received()[-1].message == m.MetadataReply((), ())


def fuzz_connection(data: bytes) -> None:
    """What a client sends: a byte that says whether it is open and how its bytes are split."""
    if not data:
        return
    _neighbourhood(HANDSHAKE).take(data)


@cache
def _neighbourhood(handshake: bytes) -> _Neighbourhood:
    return _Neighbourhood(handshake)


def fuzz_pipeline(data: bytes) -> None:
    """A frame without its size, as `fuzz_frame` takes it, of a client that asks for pipelines.

    A server takes it, too.
    """
    _recode(data, pipeline.TABLE)
    _neighbourhood(PIPELINE_HANDSHAKE).take(b"\1" + len(data).to_bytes(4) + data)


def fuzz_pravega(data: bytes) -> None:
    """Frames of Pravega's protocol, decoded, and the same when encoded again; and their appends."""
    position, block = 0, None
    try:
        while 0 < (size := codec.frame_bytes(data, position, len(data))) <= len(data) - position:
            code = int.from_bytes(data[position : position + 4], signed=True)
            message = codec.decode(code, data[position + codec.HEAD_BYTES : position + size])
            assert codec.decode(code, codec.encode(message)[codec.HEAD_BYTES :]) == message
            if isinstance(message, AppendBlockEnd):
                stored = b"".join(append_pieces(block, message))
                assert stored.endswith(message.data)
            block = message.data if isinstance(message, AppendBlock) else None
            position += size
    except WireError:
        return


def fuzz_pravega_early(data: bytes) -> None:
    """A conversation in the early dialect: requests, and blocks of whole events."""
    session, position = Conversation(), 0
    try:
        while 0 < (size := EARLY.frame_bytes(data, position, len(data))) <= len(data) - position:
            request = session.take(memoryview(data)[position : position + size])
            if isinstance(request, Block):
                _walk_events(bytes(request.data))
            elif request is not None:
                code = EARLY.by_class[type(request)].code
                assert EARLY.decode(code, EARLY.encode(request)[codec.HEAD_BYTES :]) == request
            position += size
            assert session.kept_bytes <= position
    except WireError:
        return


def fuzz_mewbase(data: bytes) -> None:
    """Frames of mewbase's clients: pymongo can read what is taken, and events come back."""
    buffer, position = bytearray(data), 0
    try:
        while (size := reading.frame_bytes(buffer, position, len(data), 1 << 24)) > 0:
            if size > len(data) - position:
                return
            _take_frame(buffer, position, position + size)
            position += size
    except UnreadableFrame:
        return


def _take_frame(buffer: bytearray, start: int, end: int) -> None:
    try:
        request = reading.read(buffer, start, end)
    except BadRequest:
        return
    if b"$ref" not in buffer[start:end]:  # which pymongo wants to understand
        bson.decode(bytes(buffer[start:end]), _BSON)
    event, matcher = request.values.get("event"), request.values.get("matcher")
    if event is not None:
        assert event_of(record_of(event)) == event
        assert event_of(event) == event
        _fold(event)
    if matcher is not None:
        with contextlib.suppress(BadMatcher):
            Matcher(matcher).matches(matcher)


def _fold(event: bytes) -> None:
    """Make documents of an event, with every mode."""
    for projection in _PROJECTIONS:
        with contextlib.suppress(NoDocument):
            name, fold = projection.id_of(event), projection.fold()
            first = checked(name, fold(name, None, event))
            second = checked(name, fold(name, first, event))
            assert is_document(second, 0, len(second))


def _walk_events(stored: bytes) -> None:
    position = 0
    while position < len(stored):
        code, size = codec.HEAD.unpack_from(stored, position)
        assert code == 0
        position += codec.HEAD_BYTES + size
    assert position == len(stored)


TARGETS: Final[dict[str, Target]] = {
    "frame": fuzz_frame,
    "publish": fuzz_publish,
    "chunk": fuzz_chunk,
    "definitions": fuzz_definitions,
    "request": fuzz_request,
    "connection": fuzz_connection,
    "pipeline": fuzz_pipeline,
    "answers": fuzz_answers,
    "pravega": fuzz_pravega,
    "pravega-early": fuzz_pravega_early,
    "mewbase": fuzz_mewbase,
}
