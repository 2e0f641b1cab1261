"""Settings of a write from options, and options that may not stand together."""

from collections.abc import Mapping
from typing import Final

from pyspark_hutch.options.connection_rules import connection_settings
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use, names_of
from pyspark_hutch.options.write_settings import (
    Creation,
    Dedup,
    SaveTransaction,
    StreamWriteSettings,
)

SUB_BATCH_COUNT: Final = 100  # rows of a compressed sub-batch; the clients' usual number


def write_settings(options: Mapping[str, str], *, is_streaming: bool) -> StreamWriteSettings:
    """Return the settings of a write.

    Raises:
        WrongOption: Options are unknown, wrong, for something else or contradict each other.
    """
    given = Given(options, Use.STREAMING_WRITE if is_streaming else Use.BATCH_WRITE)
    stream, super_stream = _target(given, "stream"), _target(given, "superStream")
    if stream is not None and super_stream is not None:
        given.clash(("stream", "superStream"), "one of them says where the rows go")
    _check_routing(given)
    settings = StreamWriteSettings(
        connection=connection_settings(given),
        stream=stream,
        super_stream=super_stream,
        dedup=_dedup(given),
        transaction=_transaction(given),
        sub_batch_size=_sub_batch_size(given),
        creation=_creation(given),
        **given.fields(StreamWriteSettings),
    )
    given.settle()
    return settings


def _target(given: Given, name: str) -> str | None:
    targets: tuple[str, ...] = given.value(name, tuple) or ()
    if len(targets) > 1:
        given.refuse(name, "a write takes one name")
    return targets[0] if targets else None


def _sub_batch_size(given: Given) -> int:
    usual = 1 if given.certain("compression", str) == "none" else SUB_BATCH_COUNT
    return given.value("subBatchSize", int) or usual


def _check_routing(given: Given) -> None:
    if not given.has("superStream"):
        for name in given.given("routing", "routingKeyColumn"):
            given.need(name, "superStream")
    elif given.has("routingKeyColumn") and given.value("routing", str) == "column":
        given.clash(("routing", "routingKeyColumn"), "the column stream says where a row goes")


def _dedup(given: Given) -> Dedup | None:
    if given.certain("delivery", str) != "dedup":
        for name in names_of(Dedup):
            if given.value(name, object):  # dedupUnsafePlan=false is right everywhere
                given.need(name, f"delivery=dedup, and here is {given.shown('delivery')}")
        return None
    if given.use is Use.BATCH_WRITE and not given.has("producerName"):
        given.need("delivery", "producerName in a batch write")
    _check_plan(given)
    return Dedup(**given.fields(Dedup))


def _check_plan(given: Given) -> None:
    """Check that a row keeps its number when its task is tried again."""
    by_column = given.has("publishingIdColumn")
    if given.has("producerKeyColumn") and not by_column:
        given.need("producerKeyColumn", "publishingIdColumn")
    if given.has("dedupOrderBy") and by_column:
        given.clash(("publishingIdColumn", "dedupOrderBy"), "one of them numbers the rows")
    if not (by_column and given.has("producerKeyColumn")) and not given.is_on("dedupUnsafePlan"):
        given.need(
            "delivery",
            "publishingIdColumn and producerKeyColumn, or dedupUnsafePlan=true for rows that are "
            "numbered as they come",
        )


def _transaction(given: Given) -> SaveTransaction | None:
    names = names_of(SaveTransaction)
    said = given.given(*names)
    if said and given.certain("delivery", str) in {"none", "dedup"}:
        for name in said:
            given.need(name, f"delivery=staged, and here is {given.shown('delivery')}")
        return None
    if said and len(said) < len(names):
        given.need(said[0], next(name for name in names if name not in said))
    return SaveTransaction(**given.fields(SaveTransaction)) if said == list(names) else None


def _creation(given: Given) -> Creation | None:
    partitions = given.value("partitions", int)
    if partitions is not None and not given.has("superStream"):
        given.need("partitions", "superStream")
    if not given.is_on("createStream"):
        for name in given.given(*names_of(Creation)):
            given.need(name, "createStream=true")
        return None
    if not given.given("stream", "superStream"):
        given.need("createStream", "stream or superStream")
    if given.has("superStream") and partitions is None:
        given.need("createStream", "partitions, to create a super stream")
    return Creation(**given.fields(Creation))
