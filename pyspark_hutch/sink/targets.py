"""The streams that a write goes to: found, or made, before the first row is published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hutch.client.errors import Refused, in_words
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.options.write_settings import Creation, StreamWriteSettings

_DONE = (ResponseCode.OK, ResponseCode.STREAM_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class Targets:
    """The target of rows.

    Attributes:
        stream: All of them; None if there are partitions, or each row names its stream.
        super_stream: The super stream that has the partitions.
        partitions: The streams of the super stream, in their order.
    """

    stream: str | None = None
    super_stream: str | None = None
    partitions: tuple[str, ...] = ()


def prepare(cluster: Cluster, settings: StreamWriteSettings) -> Targets:
    """Find the targets of a write; make them if the settings say so.

    Raises:
        Refused: A target does not exist, or cannot be made or used by this user.
        ClientError: No server answers.
    """
    if settings.stream is not None:
        if settings.creation is not None:
            _create_stream(cluster, settings.stream, settings.creation)
        cluster.leaders([settings.stream])
        return Targets(stream=settings.stream)
    if settings.super_stream is not None:
        if settings.creation is not None:
            _create_super_stream(cluster, settings.super_stream, settings.creation)
        partitions = cluster.partitions(settings.super_stream)
        if not partitions:
            raise Refused(f"super stream {settings.super_stream!r} has no partitions", 0)
        return Targets(super_stream=settings.super_stream, partitions=partitions)
    return Targets()


def routes(
    cluster: Cluster, super_stream: str, keys: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    """Ask which streams of a super stream each routing key leads to."""

    def ask() -> dict[str, tuple[str, ...]]:
        wanted: list[tuple[str, m.Message]] = [
            ("route", m.Route(key, super_stream)) for key in keys
        ]
        with cluster.connection() as connection:
            replies = list(connection.requests(wanted))
        found = {}
        for key, reply in zip(keys, replies, strict=True):
            assert isinstance(reply, m.StreamsReply), "the codec gives the row's reply"
            if reply.code != ResponseCode.OK:
                text = f"super stream {super_stream!r} {in_words(reply.code)}"
                raise Refused(text, reply.code)
            found[key] = reply.streams
        return found

    return cluster.retried(f"routes of {super_stream!r}", ask)


def _create_stream(cluster: Cluster, stream: str, creation: Creation) -> None:
    request = m.CreateStream(stream, creation.arguments)
    _create(cluster, "create_stream", request, f"stream {stream!r}")


def _create_super_stream(cluster: Cluster, super_stream: str, creation: Creation) -> None:
    assert creation.partitions is not None, "a super stream is made with partitions"
    keys = tuple(str(index) for index in range(creation.partitions))
    streams = tuple(f"{super_stream}-{key}" for key in keys)
    request = m.CreateSuperStream(super_stream, streams, keys, creation.arguments)
    _create(cluster, "create_super_stream", request, f"super stream {super_stream!r}")


def _create(cluster: Cluster, name: str, request: m.Message, about: str) -> None:
    code = cluster.ask(f"creating {about}", m.Status, name, request).code
    if code == ResponseCode.PRECONDITION_FAILED:
        raise Refused(f"{about} exists with other settings, or its settings are wrong", code)
    if code not in _DONE:
        raise Refused(f"{about} cannot be created: it {in_words(code)}", code)
