"""Settings of a write from options, and what may not stand together in them."""

from collections.abc import Mapping
from typing import Final

from pyspark_hutch.options.connecting import connection_settings
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Use
from pyspark_hutch.options.settings import (
    BodyFormat,
    Compression,
    Creation,
    Dedup,
    Delivery,
    Routing,
    Transaction,
    WriteSettings,
)

SUB_BATCH_COUNT: Final = 100  # rows of a compressed sub-batch; the clients' usual number

_OF_DEDUP: Final = ("producerName", "publishingIdColumn", "producerKeyColumn", "dedupOrderBy")
_OF_CREATION: Final = (
    "partitions",
    "retention.maxBytes",
    "retention.maxAge",
    "retention.segmentBytes",
)
_OF_TRANSACTION: Final = ("txnAppId", "txnVersion")
_DELIVERIES: Final[dict[str, Delivery]] = {
    "auto": "auto",
    "staged": "staged",
    "none": "none",
    "dedup": "dedup",
}
_BODY_FORMATS: Final[dict[str, BodyFormat]] = {"amqp": "amqp", "raw": "raw"}
_ROUTINGS: Final[dict[str, Routing]] = {"hash": "hash", "key": "key", "column": "column"}
_COMPRESSIONS: Final[dict[str, Compression]] = {
    "none": "none",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zstd",
}


def write_settings(options: Mapping[str, str], *, is_streaming: bool) -> WriteSettings:
    """Return the settings of a write.

    Raises:
        WrongOption: Options are unknown, wrong, for something else or contradict each other.
    """
    given = Given(options, Use.STREAMING_WRITE if is_streaming else Use.BATCH_WRITE)
    compression = _COMPRESSIONS[given.certain("compression", str)]
    stream, super_stream = _target(given, "stream"), _target(given, "superStream")
    if stream is not None and super_stream is not None:
        given.clash(("stream", "superStream"), "one of them says where the rows go")
    _check_routing(given)
    settings = WriteSettings(
        connection=connection_settings(given),
        stream=stream,
        super_stream=super_stream,
        delivery=_DELIVERIES[given.certain("delivery", str)],
        dedup=_dedup(given),
        transaction=_transaction(given),
        routing=_ROUTINGS[given.certain("routing", str)],
        routing_key_column=given.certain("routingKeyColumn", str),
        compression=compression,
        sub_batch_size=given.value("subBatchSize", int)
        or (1 if compression == "none" else SUB_BATCH_COUNT),
        body_format=_BODY_FORMATS[given.certain("bodyFormat", str)],
        ignore_unknown_columns=given.is_on("ignoreUnknownColumns"),
        creation=_creation(given),
        in_flight_max=given.certain("maxInFlight", int),
        confirm_timeout_ms=given.certain("confirmTimeoutMs", int),
    )
    given.settle()
    return settings


def _target(given: Given, name: str) -> str | None:
    targets: tuple[str, ...] = given.value(name, tuple) or ()
    if len(targets) > 1:
        given.refuse(name, "a write takes one name")
    return targets[0] if targets else None


def _check_routing(given: Given) -> None:
    if not given.has("superStream"):
        for name in given.given("routing", "routingKeyColumn"):
            given.need(name, "superStream")
    elif given.has("routingKeyColumn") and given.value("routing", str) == "column":
        given.clash(("routing", "routingKeyColumn"), "the column stream says where a row goes")


def _dedup(given: Given) -> Dedup | None:
    if given.certain("delivery", str) != "dedup":
        said = given.given(*_OF_DEDUP)
        said += ["dedupUnsafePlan"] if given.is_on("dedupUnsafePlan") else []
        for name in said:
            given.need(name, f"delivery=dedup, and here is {given.shown('delivery')}")
        return None
    if given.use is Use.BATCH_WRITE and not given.has("producerName"):
        given.need("delivery", "producerName in a batch write")
    _check_plan(given)
    return Dedup(
        producer_name=given.value("producerName", str),
        id_column=given.value("publishingIdColumn", str),
        key_column=given.value("producerKeyColumn", str),
        order_by=given.value("dedupOrderBy", tuple) or (),
        unsafe_plan=given.is_on("dedupUnsafePlan"),
    )


def _check_plan(given: Given) -> None:
    """Check that a row gets the same number whenever its task is tried again."""
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


def _transaction(given: Given) -> Transaction | None:
    said = given.given(*_OF_TRANSACTION)
    if not said:
        return None
    if given.certain("delivery", str) in {"none", "dedup"}:
        for name in said:
            given.need(name, f"delivery=staged, and here is {given.shown('delivery')}")
        return None
    app_id, version = given.value("txnAppId", str), given.value("txnVersion", int)
    if app_id is None:
        given.need("txnVersion", "txnAppId")
    if version is None:
        given.need("txnAppId", "txnVersion")
    return Transaction(app_id, version) if app_id is not None and version is not None else None


def _creation(given: Given) -> Creation | None:
    partitions = given.value("partitions", int)
    if partitions is not None and not given.has("superStream"):
        given.need("partitions", "superStream")
    if not given.is_on("createStream"):
        for name in given.given(*_OF_CREATION):
            given.need(name, "createStream=true")
        return None
    if not given.given("stream", "superStream"):
        given.need("createStream", "stream or superStream")
    if given.has("superStream") and partitions is None:
        given.need("createStream", "partitions, to create a super stream")
    return Creation(partitions, _arguments(given))


def _arguments(given: Given) -> tuple[tuple[str, str], ...]:
    """Return the arguments of the command, which are all text; an age is in whole seconds."""
    age_ms = given.value("retention.maxAge", int)
    numbers = (
        ("max-length-bytes", given.value("retention.maxBytes", int), ""),
        ("max-age", None if age_ms is None else -(-age_ms // 1_000), "s"),
        (
            "stream-max-segment-size-bytes",
            given.value("retention.segmentBytes", int),
            "",
        ),
    )
    return tuple((name, f"{number}{unit}") for name, number, unit in numbers if number is not None)
