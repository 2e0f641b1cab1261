"""Settings of a read from options, and options that may not stand together."""

from collections.abc import Mapping
from typing import Final

from pyspark_hutch.options.columns import CHUNK_FIELDS, FIELDS, NAMED
from pyspark_hutch.options.connection_rules import connection_settings
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use, names_of
from pyspark_hutch.options.places import (
    EARLIEST,
    LATEST,
    Point,
    PointKind,
    Where,
    require_exact,
)
from pyspark_hutch.options.read_settings import (
    Budgets,
    Decoding,
    Filter,
    ReadSettings,
    ReadSource,
    Splitting,
)

STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
"""The first that is given counts, as for Kafka's source."""

ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

_SOURCES: Final = names_of(ReadSource)
_NOT_OF_RECORDS: Final = {*names_of(BrokerSettings), *_SOURCES, "metadata"}
_OF_RECORDS: Final = [name for name in names_of(ReadSettings) if name not in _NOT_OF_RECORDS]
_OF_AMQP: Final = ("applicationProperties", "appColumns")
_COMPARABLE: Final = (PointKind.OFFSET, PointKind.TIMESTAMP)


def read_settings(options: Mapping[str, str], *, is_streaming: bool) -> ReadSettings:
    """Return the settings of a read.

    Raises:
        WrongOption: Options are unknown, wrong, for something else or contradict each other.
    """
    given = Given(options, Use.STREAMING_READ if is_streaming else Use.BATCH_READ)
    source = _source(given)
    starting = _starting(given, source)
    settings = ReadSettings(
        connection=connection_settings(given),
        source=source,
        describes_streams=given.has("metadata"),
        starting=starting,
        ending=None if is_streaming else _ending(given, source, starting),
        budgets=_budgets(given),
        splitting=Splitting(**given.fields(Splitting)),
        decoding=_decoding(given),
        filter=_filter(given),
        **given.fields(ReadSettings),
    )
    if settings.describes_streams:
        for name in given.given(*_OF_RECORDS):
            given.clash(("metadata", name), "no records are read")
    given.settle()
    return settings


def _source(given: Given) -> ReadSource:
    said = given.given(*_SOURCES)
    if not said:
        given.problems.append(
            "option stream is missing: one of stream, superStream, assign and streamPattern says "
            "what is read"
        )
    if len(said) > 1:
        given.clash(said, "one of them says what is read")
    return ReadSource(**given.fields(ReadSource))


def _starting(given: Given, source: ReadSource) -> Where:
    is_batch = given.use is Use.BATCH_READ
    starting = _where(given, STARTS, EARLIEST if is_batch else LATEST)
    if is_batch and LATEST in _points(starting):
        given.refuse(starting.option, "a batch read cannot start at latest")
    _check_names(given, starting, source)
    return starting


def _ending(given: Given, source: ReadSource, starting: Where) -> Where:
    ending = _where(given, ENDS, LATEST)
    if EARLIEST in _points(ending):
        given.refuse(ending.option, "a read cannot end at earliest")
    _check_names(given, ending, source)
    if any(_is_behind(*pair) for pair in _pairs(starting, ending)):
        given.clash((starting.option, ending.option), "the read would end before it starts")
    return ending


def _where(given: Given, names: tuple[str, ...], default: Point) -> Where:
    for name in given.given(*names):
        value = given.certain(name, object)
        if isinstance(value, Point):
            return Where(name, everywhere=value)
        assert isinstance(value, tuple), name
        return Where(name, by_stream=value)
    return Where(names[-1], everywhere=default)


def _points(where: Where) -> list[Point]:
    if where.everywhere is not None:
        return [where.everywhere]
    return [point for _, point in where.by_stream]


def _check_names(given: Given, where: Where, source: ReadSource) -> None:
    """Compare the names with those of plain streams; partitions only the server knows."""
    if where.names and source.streams:
        try:
            require_exact(where.option, where.names, source.streams)
        except WrongOption as error:
            given.problems.extend(error.problems)


def _pairs(starting: Where, ending: Where) -> list[tuple[Point, Point]]:
    """Return the start and end of each stream that is named; of all, if none is."""
    starts, ends = dict(starting.by_stream), dict(ending.by_stream)
    pairs = [
        (starts.get(name, starting.everywhere), ends.get(name, ending.everywhere))
        for name in sorted(starts.keys() | ends.keys())
    ] or [(starting.everywhere, ending.everywhere)]
    return [(start, end) for start, end in pairs if start is not None and end is not None]


def _is_behind(start: Point, end: Point) -> bool:
    return start.kind is end.kind and start.kind in _COMPARABLE and start.number > end.number


def _budgets(given: Given) -> Budgets:
    budgets = Budgets(**given.fields(Budgets))
    least, most = budgets.offsets_min, budgets.offsets_max
    if least is not None and most is not None and least > most:
        given.clash(
            ("minOffsetsPerTrigger", "maxOffsetsPerTrigger"), "the least is more than the most"
        )
    if given.use is Use.STREAMING_READ and given.has("maxTriggerDelay") and least is None:
        given.need("maxTriggerDelay", "minOffsetsPerTrigger")
    return budgets


def _decoding(given: Given) -> Decoding:
    fields = set(given.value("metadataFields", tuple) or ())
    if given.certain("bodyFormat", str) == "raw":
        said = ["metadataFields"] if fields.intersection(FIELDS) else []
        said += given.given(*_OF_AMQP)
        said += ["includeProperties"] if given.is_on("includeProperties") else []
        for name in said:
            given.clash(("bodyFormat", name), "a raw body has no AMQP sections")
    if given.is_on("includeProperties"):
        fields |= {"properties", "application_properties"}
    extra = tuple(name for name in NAMED if name in fields)
    extra += CHUNK_FIELDS if given.is_on("includeChunkInfo") else ()
    return Decoding(extra_columns=extra, **given.fields(Decoding))


def _filter(given: Given) -> Filter:
    if given.is_on("filterMatchUnfiltered") and not given.has("filterValues"):
        given.need("filterMatchUnfiltered", "filterValues")
    return Filter(**given.fields(Filter))
