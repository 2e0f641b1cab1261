"""What a client might send: a handshake, then commands that fit together, and some that do not."""

from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import strategies as st

from hutch.stream import messages as m
from hutch.stream.codec import encode_reply, encode_request
from hutch.stream.commands import BY_NAME, COMMANDS, RESPONSE_BIT, Command, Sender
from hutch.stream.layout import layout_of
from hutch.stream.offsets import FIRST, at_offset
from hutch.stream.pipeline import PROPERTIES
from tests.client import plain
from tests.property.gateway.publish_calls import publish_frames
from tests.property.wire.strategies import messages_of, requests_of


def frame_of(name: str, message: m.Message, *, version: int = 1) -> bytes:
    correlation_id = 7 if BY_NAME[name].is_correlated else None
    return encode_request(name, message, correlation_id=correlation_id, version=version)


def handshake(properties: Mapping[str, str]) -> bytes:
    return b"".join(
        frame_of(name, message)
        for name, message in (
            ("peer_properties", m.PeerProperties(properties)),
            ("sasl_handshake", m.SaslHandshake()),
            ("sasl_authenticate", plain("guest", "guest")),
            ("tune", m.Tune(0, 0)),
            ("open", m.Open("/")),
            ("create_stream", m.CreateStream("s", {})),
        )
    )


HANDSHAKE: Final = handshake({"product": "test"})
PIPELINE_HANDSHAKE: Final = handshake(PROPERTIES)

streams = st.sampled_from(["s", "s", "s", "t", "nowhere"])
references = st.sampled_from(["", "", "a", "b", "r" * 256])
ids = st.integers(0, 2)
offsets = st.sampled_from([FIRST, at_offset(0)])

# Answers to these depend on nothing but the commands before them, however they arrive.
STEADY: Final = st.one_of(
    st.builds(m.DeclarePublisher, ids, references, streams),
    st.builds(m.DeclarePublisher, ids, references, streams),
    st.builds(m.QueryPublisherSequence, references, streams),
    st.builds(m.Subscribe, ids, streams, offsets, st.integers(0, 5), st.just({})),
    st.builds(m.Credit, ids, st.integers(-2, 5)),
    st.builds(m.StoreOffset, references, streams, st.integers(0, 2**64 - 1)),
    st.builds(m.QueryOffset, references, streams),
    st.builds(m.Unsubscribe, ids),
    st.builds(m.CreateStream, streams, st.just({})),
    st.builds(m.Metadata, st.lists(streams, max_size=3).map(tuple)),
    st.builds(m.ExchangeCommandVersions, st.just((m.CommandVersions(8, 1, 2),))),
    st.builds(m.Partitions, streams),
    st.just(m.Heartbeat()),
)
# Answers to these depend on what is committed, or what they do to confirms on their way.
TIMED: Final = st.one_of(
    st.builds(m.DeletePublisher, ids),
    st.builds(m.DeleteStream, streams),
    st.builds(m.StreamStats, streams),
    st.builds(m.ResolveOffsetSpec, streams, offsets, st.just({})),
)
NAMES: Final = {row.requests[0]: row.name for row in COMMANDS if row.name != "publish"}


def frames_of(messages: st.SearchStrategy[m.Message]) -> st.SearchStrategy[bytes]:
    return messages.map(lambda message: frame_of(NAMES[type(message)], message))


any_request = (
    st.sampled_from([row for row in COMMANDS if Sender.CLIENT in row.sender])
    .flatmap(lambda row: st.tuples(st.just(row), requests_of(row)))
    .map(lambda drawn: frame_of(drawn[0].name, drawn[1][1], version=drawn[1][0]))
)


def answers_of(row: Command) -> st.SearchStrategy[bytes]:
    assert row.reply is not None
    messages = messages_of(layout_of(row.reply))
    return messages.map(lambda reply: encode_reply(row, 7 if row.is_correlated else None, reply))


any_answer = st.sampled_from([row for row in COMMANDS if row.reply is not None]).flatmap(answers_of)
any_head = st.builds(
    lambda key, bit, version, rest: _sized(
        (key | bit * RESPONSE_BIT).to_bytes(2) + version.to_bytes(2) + rest
    ),
    st.integers(0, 0x21),
    st.integers(0, 1),
    st.integers(0, 3),
    st.binary(max_size=30),
)
raw_bytes = st.binary(max_size=40)


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


publishes = publish_frames() | publish_frames(version=2)


@st.composite
def steady_conversations(draw: st.DrawFn) -> bytes:
    """Commands that are answered alike however they arrive; perhaps something wrong at the end."""
    frames = draw(st.lists(frames_of(STEADY) | publish_frames(), max_size=14))
    ending = draw(st.just(b"") | raw_bytes | any_head | any_request)
    return (
        HANDSHAKE
        + frame_of("declare_publisher", m.DeclarePublisher(0, "a", "s"))
        + (b"".join(frames) + ending)
    )


@st.composite
def wild_conversations(draw: st.DrawFn) -> bytes:
    """Anything at all, mostly after a handshake."""
    anything: Sequence[st.SearchStrategy[bytes]] = (
        frames_of(STEADY),
        frames_of(STEADY),
        frames_of(TIMED),
        publishes,
        publishes,
        any_request,
        any_answer,
        any_head,
        raw_bytes,
    )
    start = HANDSHAKE[: draw(st.just(len(HANDSHAKE)) | st.integers(0, len(HANDSHAKE)))]
    return start + b"".join(draw(st.lists(st.one_of(anything), max_size=12)))


splits = st.lists(st.integers(1, 40), max_size=200)
