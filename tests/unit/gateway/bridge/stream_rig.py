"""A stream server by hand, as the bridge needs one: it stores offsets and makes streams."""

from typing import Any

from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import BY_NAME
from tests.chunks import SubBatch
from tests.fake_server import OK, Talk
from tests.sink_rig import FakeSink


class BridgeServer(FakeSink):
    """Serves streams.

    Attributes:
        offsets: What is stored, by reference and stream.
        made: Requests to make streams.
        asked: Subscriptions.
        declared: Publishers: number, reference and stream.
        resolves: Whether it tells where reading would begin.
    """

    def __init__(self, *streams: str) -> None:
        super().__init__(*streams)
        self.offsets: dict[tuple[str, str], int] = {}
        self.made: list[m.Message] = []
        self.asked: list[m.Subscribe] = []
        self.declared: list[m.DeclarePublisher] = []
        self.resolves = True
        subscribe, declare = self.handlers["subscribe"], self.handlers["declare_publisher"]

        def subscribed(talk: Talk, asked: Decoded) -> None:
            assert isinstance(asked.message, m.Subscribe)
            self.asked.append(asked.message)
            subscribe(talk, asked)

        def declared(talk: Talk, asked: Decoded) -> None:
            assert isinstance(asked.message, m.DeclarePublisher)
            self.declared.append(asked.message)
            declare(talk, asked)

        self.handlers |= {
            "subscribe": subscribed,
            "declare_publisher": declared,
            "query_offset": self._stored,
            "store_offset": self._store,
            "create_stream": self._create,
            "create_super_stream": self._create,
            "exchange_command_versions": self._versions,
        }

    def answer(self, name: str, message: m.Message) -> None:
        """Answer a command always so."""
        self.handlers[name] = lambda talk, asked: talk.reply(asked, message)

    def push(self, name: str, message: m.Message) -> None:
        """Push a command to the newest connection."""
        self.talks[-1].push(name, message)

    def _stored(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.QueryOffset)
        found = self.offsets.get((asked.message.reference, asked.message.stream))
        code = ResponseCode.NO_OFFSET if found is None else OK
        talk.reply(asked, m.StoredOffset(code, found or 0))

    def _store(self, _talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.StoreOffset)
        self.offsets[asked.message.reference, asked.message.stream] = asked.message.offset

    def _create(self, talk: Talk, asked: Decoded) -> None:
        wanted: Any = asked.message
        self.made.append(wanted)
        names = getattr(wanted, "partitions", None) or (wanted.stream,)
        is_there = any(name in self.streams for name in names)
        for name in names:
            self.streams.setdefault(name, [])
            self.stored.setdefault(name, [])
        if isinstance(wanted, m.CreateSuperStream):
            self.super_streams[wanted.super_stream] = wanted.partitions
        talk.reply(asked, m.Status(ResponseCode.STREAM_ALREADY_EXISTS if is_there else OK))

    def _versions(self, talk: Talk, asked: Decoded) -> None:
        names = ["publish", "resolve_offset_spec"] if self.resolves else ["publish"]
        known = tuple(m.CommandVersions(BY_NAME[name].key, 1, 1) for name in names)
        talk.reply(asked, m.CommandVersionsReply(OK, known))

    def store(
        self,
        talk: Talk,
        publisher_id: int,
        entries: Any,  # noqa: ANN401  # as the base has it
    ) -> None:
        """Keep messages; 0 is an id as others."""
        stream, reference = place = self._publishers[talk, publisher_id]
        self.frames.append(len(entries))
        for publishing_id, entry in entries:
            assert not isinstance(entry, SubBatch)
            if reference:
                if publishing_id <= self.last_ids.get(place, -1):
                    continue
                self.last_ids[place] = publishing_id
            self.stored[stream].append(entry)
