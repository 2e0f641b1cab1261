import pickle

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.options.write_settings import (
    Creation,
    Dedup,
    SaveTransaction,
    StreamWriteSettings,
)

SERVER = {"endpoints": "localhost"}
STREAM = SERVER | {"stream": "s"}
SUPER_STREAM = SERVER | {"superStream": "s"}
BY_COLUMN = {"delivery": "dedup", "publishingIdColumn": "id", "producerKeyColumn": "key"}
CONNECTION = BrokerSettings((Endpoint("localhost", 5552),))


def batch(options: dict[str, str]) -> StreamWriteSettings:
    return write_settings(options, is_streaming=False)


def streaming(options: dict[str, str]) -> StreamWriteSettings:
    return write_settings(options, is_streaming=True)


def refused(options: dict[str, str], *, is_streaming: bool = False) -> str:
    with pytest.raises(WrongOption) as caught:
        write_settings(options, is_streaming=is_streaming)
    assert len(caught.value.problems) == 1, caught.value.problems
    return str(caught.value)


def test_a_write_needs_no_more_than_a_server_and_a_stream() -> None:
    assert batch(STREAM) == streaming(STREAM) == StreamWriteSettings(CONNECTION, stream="s")


def test_every_setting_comes_from_its_option() -> None:
    settings = streaming(
        SUPER_STREAM
        | BY_COLUMN
        | {
            "producerName": "job",
            "routing": "key",
            "routingKeyColumn": "region",
            "compression": "zstd",
            "subBatchSize": "7",
            "bodyFormat": "raw",
            "ignoreUnknownColumns": "true",
            "createStream": "true",
            "partitions": "3",
            "retention.maxBytes": "1g",
            "retention.maxAge": "1500ms",
            "retention.segmentBytes": "1m",
            "maxInFlight": "5",
            "confirmTimeoutMs": "6",
        }
    )

    assert settings == StreamWriteSettings(
        CONNECTION,
        super_stream="s",
        delivery="dedup",
        dedup=Dedup("job", "id", "key"),
        routing="key",
        routing_key_column="region",
        compression="zstd",
        sub_batch_size=7,
        body_format="raw",
        ignore_unknown_columns=True,
        creation=Creation(3, 1_073_741_824, 1_500, 1_048_576),
        in_flight_max=5,
        confirm_timeout_ms=6,
    )
    assert settings.creation is not None
    assert settings.creation.arguments == {
        "max-length-bytes": "1073741824",
        "max-age": "2s",
        "stream-max-segment-size-bytes": "1048576",
    }
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_secret_is_in_no_repr() -> None:
    assert "secret" not in repr(batch(STREAM | {"password": "secret"}))


def test_without_a_target_each_row_names_its_stream() -> None:
    settings = batch(SERVER)

    assert settings.stream is None
    assert settings.super_stream is None


def test_a_write_has_one_target() -> None:
    assert refused(STREAM | {"superStream": "t"}) == (
        "options stream='s' and superStream='t' contradict each other: one of them says where "
        "the rows go"
    )
    assert refused(SERVER | {"stream": "a,b"}) == "option stream='a,b': a write takes one name"


@pytest.mark.parametrize("name", ["routing", "routingKeyColumn"])
def test_only_a_super_stream_has_routes(name: str) -> None:
    assert refused(STREAM | {name: "hash"}) == f"option {name}='hash' needs superStream"
    assert batch(SUPER_STREAM | {name: "hash"}).super_stream == "s"


def test_rows_that_name_their_partition_have_no_routing_key() -> None:
    problem = refused(SUPER_STREAM | {"routing": "column", "routingKeyColumn": "k"})

    assert problem.startswith("options routing='column' and routingKeyColumn='k'")
    assert batch(SUPER_STREAM | {"routing": "column"}).routing == "column"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 1),
        ({"compression": "none"}, 1),
        ({"compression": "gzip"}, 100),
        ({"subBatchSize": "9"}, 9),
        ({"subBatchSize": "1", "compression": "lz4"}, 1),
    ],
)
def test_compression_makes_sub_batches(options: dict[str, str], count: int) -> None:
    assert batch(STREAM | options).sub_batch_size == count


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("producerName", "job"),
        ("publishingIdColumn", "id"),
        ("producerKeyColumn", "key"),
        ("dedupOrderBy", "id"),
        ("dedupUnsafePlan", "true"),
    ],
)
@pytest.mark.parametrize("delivery", ["auto", "staged", "none"])
def test_what_is_for_dedup_needs_it(name: str, text: str, delivery: str) -> None:
    assert refused(STREAM | {"delivery": delivery, name: text}) == (
        f"option {name}='{text}' needs delivery=dedup, and here is delivery='{delivery}'"
    )


@pytest.mark.parametrize("delivery", ["auto", "staged"])
def test_a_save_may_have_a_name_and_a_number(delivery: str) -> None:
    settings = batch(STREAM | {"delivery": delivery, "txnAppId": "job", "txnVersion": "7"})

    assert settings.transaction == SaveTransaction("job", 7)
    assert settings.delivery == delivery
    assert batch(STREAM).transaction is None


def test_the_name_of_a_save_needs_its_number_and_the_other_way_round() -> None:
    assert refused(STREAM | {"txnAppId": "a"}) == "option txnAppId='a' needs txnVersion"
    assert refused(STREAM | {"txnVersion": "1"}) == "option txnVersion='1' needs txnAppId"


@pytest.mark.parametrize("delivery", ["none", "dedup"])
def test_only_a_staged_save_has_a_number(delivery: str) -> None:
    options = {"delivery": delivery, "txnAppId": "a", "txnVersion": "1"}
    more = {"producerName": "p", "dedupUnsafePlan": "true"} if delivery == "dedup" else {}

    with pytest.raises(WrongOption) as caught:
        batch(STREAM | options | more)

    assert list(caught.value.problems) == [
        f"option {name} needs delivery=staged, and here is delivery='{delivery}'"
        for name in ("txnAppId='a'", "txnVersion='1'")
    ]


def test_a_streaming_write_has_its_numbers_from_spark() -> None:
    assert refused(STREAM | {"txnAppId": "a"}, is_streaming=True) == (
        "option txnAppId='a': is for a batch write, and this is a streaming write"
    )


def test_dedup_of_a_batch_needs_a_name_and_that_of_a_stream_may_have_one() -> None:
    options = STREAM | BY_COLUMN

    assert refused(options) == "option delivery='dedup' needs producerName in a batch write"
    assert streaming(options).dedup == Dedup(None, "id", "key")
    assert batch(options | {"producerName": "job"}).dedup == Dedup("job", "id", "key")


@pytest.mark.parametrize("options", [{}, {"publishingIdColumn": "id"}, {"dedupOrderBy": "a, b"}])
def test_a_plan_that_may_change_is_wished_for(options: dict[str, str]) -> None:
    dedup = STREAM | {"delivery": "dedup"} | options

    problem = refused(dedup, is_streaming=True)
    assert problem.startswith(
        "option delivery='dedup' needs publishingIdColumn and producerKeyColumn, or dedupUnsafe"
    )
    assert streaming(dedup | {"dedupUnsafePlan": "true"}).dedup == Dedup(
        None,
        options.get("publishingIdColumn"),
        order_by=("a", "b") if "dedupOrderBy" in options else (),
        unsafe_plan=True,
    )


def test_a_key_of_producers_needs_ids() -> None:
    options = {"delivery": "dedup", "producerKeyColumn": "key", "dedupUnsafePlan": "true"}

    assert refused(STREAM | options, is_streaming=True) == (
        "option producerKeyColumn='key' needs publishingIdColumn"
    )


def test_rows_with_ids_are_not_ordered_for_them() -> None:
    problem = refused(STREAM | BY_COLUMN | {"dedupOrderBy": "id"}, is_streaming=True)

    assert problem.startswith("options publishingIdColumn='id' and dedupOrderBy='id' contradict")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("partitions", "3"),
        ("retention.maxBytes", "1g"),
        ("retention.maxAge", "1d"),
        ("retention.segmentBytes", "1m"),
    ],
)
@pytest.mark.parametrize("switch", [{}, {"createStream": "false"}])
def test_what_is_for_a_new_stream_needs_one(name: str, text: str, switch: dict[str, str]) -> None:
    assert refused(SUPER_STREAM | switch | {name: text}) == (
        f"option {name}='{text}' needs createStream=true"
    )


def test_a_new_stream_has_a_name() -> None:
    assert refused(SERVER | {"createStream": "true"}) == (
        "option createStream='true' needs stream or superStream"
    )
    assert batch(STREAM | {"createStream": "true"}).creation == Creation()


def test_a_new_super_stream_has_partitions_and_a_new_stream_none() -> None:
    assert refused(SUPER_STREAM | {"createStream": "true"}) == (
        "option createStream='true' needs partitions, to create a super stream"
    )
    assert refused(STREAM | {"createStream": "true", "partitions": "3"}) == (
        "option partitions='3' needs superStream"
    )


def test_options_of_a_read_do_nothing() -> None:
    assert batch(STREAM | {"startingOffsets": "latest", "assign": '{"a": [1]}'}) == batch(STREAM)
