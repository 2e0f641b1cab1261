from __future__ import annotations

import re

import pytest

from pyspark_hutch.options.endpoints import ListedAddress, Uri
from pyspark_hutch.options.errors import WrongOption, shown
from pyspark_hutch.options.given import Given
from pyspark_hutch.options.option import Option, Use
from pyspark_hutch.options.places import EARLIEST, LATEST, Point, PointKind
from pyspark_hutch.options.table import (
    OPTIONS,
    SPARKS_OWN,
    TABLE,
    is_bare_table,
    is_sparks_own,
    nearest,
    require_options,
)

TIME = Point(PointKind.TIMESTAMP, 12)
ROWS = {option.name: option for options in TABLE.values() for option in options}

# Option: texts that it takes with their values, texts that it does not take.
EXAMPLES: dict[str, tuple[dict[str, object], list[str]]] = {
    "endpoints": (
        {"a,[::1]:1": (ListedAddress("a", None), ListedAddress("::1", 1))},
        ["", "a:", "a@b"],
    ),
    "uri": (
        {
            "rabbitmq-stream://h": Uri(
                ListedAddress("h", None), tls=False, username=None, password=None, vhost=None
            )
        },
        ["", "localhost:5552", "amqp://h"],
    ),
    "vhost": ({"/": "/", "v w": "v w"}, ["", "a\nb", "x" * 4_097]),
    "advertised": ({"use": True, "Ignore": False}, ["", "true"]),
    "connectTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "requestTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "pollTimeoutMs": ({"1": 1, "86400000": 86_400_000}, ["0", "86400001", "x", "-1", "1s"]),
    "planner.retries": ({"0": 0, "1000": 1_000}, ["-1", "1001", "x"]),
    "planner.retryIntervalMs": (
        {"1": 1, "86400000": 86_400_000},
        ["0", "86400001", "x", "-1", "1s"],
    ),
    "pool.idleTimeoutMs": ({"0": 0, "60000": 60_000}, ["-1", "60001", "x"]),
    "pool.capacity": ({}, ["1", "64"]),
    "connectionName": ({"x" * 128: "x" * 128}, ["", "x" * 129]),
    "client.<name>": ({"x" * 255: "x" * 255}, []),
    "username": ({"u": "u"}, ["", "a\tb", "x" * 4_097]),
    "password": ({" p\n": " p\n", "x" * 4_096: "x" * 4_096}, ["", "x" * 4_097, "a\0b", "\ud800"]),
    "passwordFile": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "passwordEnv": (
        {"HUTCH_1": "HUTCH_1", "x" * 255: "x" * 255},
        ["", "1A", "A-B", "secret!", "x" * 256],
    ),
    "tls": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "tls.ca": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.cert": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.key": ({"/a b": "/a b"}, ["", "a\nb", "x" * 4_097]),
    "tls.verifyHostname": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "tls.serverName": ({"h": "h"}, ["", "x" * 256]),
    "stream": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "superStream": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "assign": ({'{"a": [0, 2]}': (("a", (0, 2)),)}, ["", "a", '{"a": [0.5]}']),
    "streamPattern": ({"^orders-[0-9]+$": "^orders-[0-9]+$"}, ["", "x" * 1_025, "a\nb"]),
    "metadata": ({"streams": True, "Streams": True}, ["", "tables"]),
    "readMode": ({}, ["direct", "stream"]),
    "segmentRoot": ({}, ["/data"]),
    "startingOffsets": (
        {"earliest": EARLIEST, "-9": Point(PointKind.ROWS_BACK, 9), '{"s": -1}': (("s", LATEST),)},
        ["", "9", "soon", '{"s": 1.5}', '{"s": 1, "s": 2}', '{"s": '],
    ),
    "startingTimestamp": ({"12": TIME}, ["", "now", "2026-01-01T00:00:00"]),
    "startingOffsetsByTimestamp": ({'{"s": 12}': (("s", TIME),)}, ["", "12", '{"s": true}']),
    "startingOffsetsByTimestampStrategy": (
        {"error": "error", "LATEST": "latest"},
        ["", "earliest"],
    ),
    "endingOffsets": ({"latest": LATEST, '{"s": -1}': (("s", LATEST),)}, ["", "-9", "soon"]),
    "endingTimestamp": ({"12": TIME}, ["", "-1", "2026-01-01"]),
    "endingOffsetsByTimestamp": ({'{"s": 12}': (("s", TIME),)}, ["", "12", '{"s": "latest"}']),
    "failOnDataLoss": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "maxOffsetsPerTrigger": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxBytesPerTrigger": ({"1": 1, "64m": 2**26}, ["0", "x", "1.5g"]),
    "minOffsetsPerTrigger": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxTriggerDelay": ({"1ms": 1, "7d": 604_800_000}, ["0s", "8d", "15", "x"]),
    "minPartitions": ({"1": 1, "100000": 100_000}, ["0", "100001", "x"]),
    "maxRecordsPerPartition": (
        {"1": 1, str(2**63 - 1): 2**63 - 1},
        ["0", "-1", "x", "1.0", str(2**63)],
    ),
    "maxBytesPerPartition": ({"1": 1, "64m": 2**26}, ["0", "x", "1.5g"]),
    "bodyFormat": ({"amqp": "amqp", "RAW": "raw"}, ["", "json"]),
    "metadataFields": ({"footer,header": ("header", "footer")}, ["", "headers", "offset"]),
    "includeProperties": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "includeChunkInfo": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "applicationProperties": ({"map": False, "Variant": True}, ["", "json"]),
    "appColumns": ({"a int": (("a", "int"),)}, ["", "a", "a map", "offset int", "a int, A int"]),
    "badSubBatches": (
        {"fail": "fail", "SKIP": "skip", "raw": "raw"},
        ["", "drop", "true"],
    ),
    "filterValues": (
        {"a": ("a",), "a, b": ("a", "b"), '["a,b"]': ("a,b",)},
        ["", "a,", "a,a", "x" * 256, "[1]"],
    ),
    "filterMatchUnfiltered": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "consumerName": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "delivery": (
        {"auto": "auto", "STAGED": "staged", "none": "none", "Dedup": "dedup"},
        ["", "exactly-once"],
    ),
    "txnAppId": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "txnVersion": ({"0": 0, str(2**63 - 1): 2**63 - 1}, ["-1", "x", str(2**63)]),
    "producerName": ({"x" * 200: "x" * 200}, ["", "x" * 201]),
    "publishingIdColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "producerKeyColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "dedupOrderBy": ({"a, b": ("a", "b")}, ["", "a,,b", "a,a"]),
    "dedupUnsafePlan": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "maxInFlight": ({"1": 1, "1000000": 1_000_000}, ["0", "1000001", "x"]),
    "confirmTimeoutMs": ({"1": 1, "3600000": 3_600_000}, ["0", "3600001", "x"]),
    "routing": ({"hash": "hash", "KEY": "key", "column": "column"}, ["", "custom"]),
    "routingKeyColumn": ({"x" * 255: "x" * 255}, ["", "x" * 256, "a\nb"]),
    "compression": (
        {name: name for name in ("none", "gzip", "snappy", "lz4", "zstd")},
        ["", "brotli", "true"],
    ),
    "subBatchSize": ({"1": 1, "65535": 65_535}, ["0", "65536", "x"]),
    "ignoreUnknownColumns": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "createStream": ({"true": True, "FALSE": False}, ["", "yes", "1"]),
    "partitions": ({"1": 1, "1000": 1_000}, ["0", "1001", "x"]),
    "retention.maxBytes": ({"1": 1, "2g": 2**31}, ["0", "-1", "x"]),
    "retention.maxAge": ({"1s": 1_000, "7D": 604_800_000}, ["999ms", "1M", "36501d", "7"]),
    "retention.segmentBytes": ({"9": 9, "3000000000": 3 * 10**9}, ["8", "3000000001", "x"]),
}
RIGHT = [(name, text) for name, (right, _) in EXAMPLES.items() for text in right]
WRONG = [(name, text) for name, (_, wrong) in EXAMPLES.items() for text in wrong]


def test_every_option_has_its_own_name() -> None:
    assert len(OPTIONS) == len(ROWS)
    assert not SPARKS_OWN & OPTIONS.keys()


@pytest.mark.parametrize("option", ROWS.values(), ids=lambda option: option.name)
def test_a_row_is_complete(option: Option) -> None:
    assert re.fullmatch(r"[a-z]+(\.?[A-Za-z]+)*|client\.<name>", option.name)
    assert option.meaning.endswith(".") == (option.kind is not None)
    assert option.default is None or not option.without
    if option.kind is not None and option.default is not None:
        option.kind.parse(option.default)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("strem", "stream"),
        ("endpoint", "endpoints"),
        ("startingoffset", "startingOffsets"),
        ("superstreams", "superStream"),
        ("failondatalos", "failOnDataLoss"),
        ("tls.verifyhost", "tls.verifyHostname"),
        ("passwd", "password"),
        ("subscribe", "stream"),
        ("kafka.bootstrap.servers", "endpoints"),
        ("includeheaders", "includeProperties"),
        ("mode", "delivery"),
    ],
)
def test_the_nearest_right_name_is_found(wrong: str, right: str) -> None:
    assert nearest(wrong) == right


def test_a_name_like_none_has_no_nearest() -> None:
    assert nearest("quux") is None


@pytest.mark.parametrize(
    "name",
    [
        "path",
        "paths",
        "provider",
        "owner",
        "comment",
        "option.x",
        "checkpointlocation",
        "queryname",
    ],
)
def test_what_spark_adds_is_its_own(name: str) -> None:
    assert is_sparks_own(name)


@pytest.mark.parametrize("name", ["options", "option", "stream", "pathname"])
def test_what_is_like_a_name_of_spark_is_not_its_own(name: str) -> None:
    assert not is_sparks_own(name)


def use_of(name: str) -> Use:
    return next(iter(ROWS[name].uses))


def test_every_option_has_examples() -> None:
    assert EXAMPLES.keys() == ROWS.keys()
    assert all(bool(EXAMPLES[name][0]) == (row.kind is not None) for name, row in ROWS.items())


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_a_right_value_is_taken_in_any_case_of_the_name(name: str, text: str) -> None:
    given = Given({name.lower(): text}, use_of(name))

    assert given.value(name, object) == EXAMPLES[name][0][text]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_wrong_value_is_told_with_its_option_on_one_line(name: str, text: str) -> None:
    with pytest.raises(WrongOption) as caught:
        Given({name.lower(): text}, use_of(name))

    (problem,) = caught.value.problems
    value = " (not shown)" if ROWS[name].hidden or "@" in text else f"={shown(text)}"
    said = f"option {name}{value}"
    assert problem.startswith((f"{said}: ", f"{said} is refused: "))
    assert "\n" not in problem


OF_TABLE = {"owner": "me", "provider": "hutch"}


@pytest.mark.parametrize("options", [{}, {"path": "x"}, {"stream": "orders"}])
def test_a_load_is_no_table(options: dict[str, str]) -> None:
    assert not is_bare_table(options)


def test_a_table_without_options_of_ours_may_be_made() -> None:
    assert is_bare_table(OF_TABLE)
    assert is_bare_table(OF_TABLE | {"team": "a table property"})


@pytest.mark.parametrize("more", [{"Stream": "orders"}, {"option.steam": "x", "steam": "x"}])
def test_a_table_with_options_is_refused_with_what_works(more: dict[str, str]) -> None:
    with pytest.raises(WrongOption, match=r"use CREATE TEMPORARY VIEW .* SELECT .* WITH"):
        is_bare_table(OF_TABLE | more)


@pytest.mark.parametrize("options", [{}, {"path": "x"}, OF_TABLE])
def test_a_query_that_got_no_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(WrongOption, match="no option has come with this query; a catalog table's"):
        require_options(options)


def test_a_query_with_any_option_of_ours_is_looked_at_further() -> None:
    require_options({"steam": "x"})
