import pickle
from dataclasses import replace

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import EARLIEST, LATEST, Point, PointKind, Where
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.read_settings import (
    Budgets,
    Decoding,
    Filter,
    ReadSettings,
    ReadSource,
    Splitting,
)

NEEDED = {"endpoints": "localhost", "stream": "s"}
CONNECTION = BrokerSettings((Endpoint("localhost", 5552),))


def batch(**options: str) -> ReadSettings:
    return read_settings(NEEDED | options, is_streaming=False)


def streaming(**options: str) -> ReadSettings:
    return read_settings(NEEDED | options, is_streaming=True)


def refused(options: dict[str, str], *, is_streaming: bool = False) -> str:
    with pytest.raises(WrongOption) as caught:
        read_settings(options, is_streaming=is_streaming)
    assert len(caught.value.problems) == 1
    return str(caught.value)


def at(offset: int) -> Point:
    return Point(PointKind.OFFSET, offset)


def time(ms: int) -> Point:
    return Point(PointKind.TIMESTAMP, ms)


def test_a_batch_read_takes_all_by_default() -> None:
    assert batch() == ReadSettings(
        connection=CONNECTION,
        source=ReadSource(streams=("s",)),
        starting=Where("startingOffsets", EARLIEST),
        ending=Where("endingOffsets", LATEST),
    )


def test_a_streaming_read_takes_what_comes_by_default() -> None:
    assert streaming() == ReadSettings(
        connection=CONNECTION,
        source=ReadSource(streams=("s",)),
        starting=Where("startingOffsets", LATEST),
        ending=None,
    )


def test_every_setting_of_a_streaming_read_comes_from_its_option() -> None:
    settings = streaming(
        startingOffsetsByTimestampStrategy="latest",
        failOnDataLoss="false",
        maxOffsetsPerTrigger="10",
        maxBytesPerTrigger="1k",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="1m",
        minPartitions="3",
        maxRecordsPerPartition="4",
        metadataFields="footer,header,bad_sub_batch",
        includeProperties="true",
        includeChunkInfo="true",
        applicationProperties="variant",
        appColumns="tenant string",
        badSubBatches="Skip",
        filterValues="eu,us",
        filterMatchUnfiltered="true",
        consumerName="job",
    )

    assert settings == ReadSettings(
        connection=CONNECTION,
        source=ReadSource(streams=("s",)),
        starting=Where("startingOffsets", LATEST),
        ending=None,
        unmatched_time="latest",
        fail_on_data_loss=False,
        budgets=Budgets(10, 1_024, 10, 60_000),
        splitting=Splitting(3, 4),
        decoding=Decoding(
            extra_columns=(
                "header",
                "properties",
                "application_properties",
                "footer",
                "bad_sub_batch",
                "chunk_id",
                "entry_index",
                "sub_index",
            ),
            variant=True,
            app_columns=(("tenant", "string"),),
            bad_sub_batches="skip",
        ),
        filter=Filter(("eu", "us"), match_unfiltered=True),
        consumer_name="job",
    )


def test_settings_are_the_same_after_a_journey_to_a_worker() -> None:
    settings = batch(
        password="secret",
        startingOffsets='{"s": 5}',
        appColumns="a int",
        tls="true",
        **{"client.team": "x"},
    )

    assert pickle.loads(pickle.dumps(settings)) == settings
    assert "secret" not in repr(settings)
    assert hash(settings) == hash(replace(settings))


def test_names_of_options_are_taken_as_spark_writes_them() -> None:
    lower = {"maxrecordsperpartition": "3", "includechunkinfo": "TRUE"}

    assert batch(**lower) == batch(maxRecordsPerPartition="3", includeChunkInfo="true")


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"stream": "a, b"}, ReadSource(streams=("a", "b"))),
        ({"superStream": "a, b"}, ReadSource(super_streams=("a", "b"))),
        ({"assign": '{"a": [1, 0]}'}, ReadSource(assigned=(("a", (1, 0)),))),
        ({"streamPattern": "^a"}, ReadSource(pattern="^a")),
    ],
)
def test_what_is_read_is_said_in_one_of_four_ways(
    options: dict[str, str], source: ReadSource
) -> None:
    settings = read_settings({"endpoints": "localhost"} | options, is_streaming=False)

    assert settings.source == source


def test_a_read_that_describes_streams_takes_no_option_about_records() -> None:
    options = {"endpoints": "localhost", "streamPattern": "a", "metadata": "streams"}

    assert read_settings(options, is_streaming=False).describes_streams
    for option in ({"startingOffsets": "earliest"}, {"minPartitions": "2"}, {"bodyFormat": "raw"}):
        assert refused(options | option).endswith("contradict each other: no records are read")
    assert "is for a batch read" in refused(options, is_streaming=True)


def test_a_read_without_a_stream_is_refused() -> None:
    assert refused({"endpoints": "localhost"}) == (
        "option stream is missing: one of stream, superStream, assign and streamPattern says "
        "what is read"
    )


@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"stream": "a", "superStream": "b"},
        {"stream": "a", "assign": '{"b": [1]}'},
        {"superStream": "a", "assign": '{"b": [1]}'},
        {"stream": "a", "superStream": "b", "assign": '{"c": [1]}'},
        {"streamPattern": "a", "stream": "b"},
        {"streamPattern": "a", "superStream": "b"},
        {"streamPattern": "a", "assign": '{"b": [1]}'},
    ],
)
def test_two_ways_to_say_what_is_read_are_refused(
    options: dict[str, str], *, is_streaming: bool
) -> None:
    problem = refused({"endpoints": "localhost"} | options, is_streaming=is_streaming)

    assert all(f"{name}=" in problem for name in options)
    assert problem.endswith("contradict each other: one of them says what is read")


@pytest.mark.parametrize(
    ("options", "starting"),
    [
        ({"startingOffsets": '{"s": 5}'}, Where("startingOffsets", None, (("s", at(5)),))),
        (
            {"startingOffsets": "-10"},
            Where("startingOffsets", Point(PointKind.ROWS_BACK, 10)),
        ),
        (
            {"startingOffsets": '{"s": 5}', "startingOffsetsByTimestamp": '{"s": 7}'},
            Where("startingOffsetsByTimestamp", None, (("s", time(7)),)),
        ),
        (
            {
                "startingOffsets": '{"s": 5}',
                "startingOffsetsByTimestamp": '{"s": 7}',
                "startingTimestamp": "9",
            },
            Where("startingTimestamp", time(9)),
        ),
    ],
)
def test_a_start_by_time_goes_before_offsets(options: dict[str, str], starting: Where) -> None:
    assert batch(**options).starting == starting
    assert streaming(**options).starting == starting


@pytest.mark.parametrize(
    ("options", "ending"),
    [
        ({"endingOffsets": '{"s": 5}'}, Where("endingOffsets", None, (("s", at(5)),))),
        (
            {"endingOffsets": '{"s": 5}', "endingOffsetsByTimestamp": '{"s": 7}'},
            Where("endingOffsetsByTimestamp", None, (("s", time(7)),)),
        ),
        (
            {"endingOffsetsByTimestamp": '{"s": 7}', "endingTimestamp": "9"},
            Where("endingTimestamp", time(9)),
        ),
    ],
)
def test_an_end_by_time_goes_before_offsets(options: dict[str, str], ending: Where) -> None:
    assert batch(**options).ending == ending


@pytest.mark.parametrize("text", ["latest", '{"s": "latest"}', '{"s": -1}'])
def test_only_a_streaming_read_can_start_at_latest(text: str) -> None:
    assert refused(NEEDED | {"startingOffsets": text}).endswith(
        ": a batch read cannot start at latest"
    )
    assert streaming(startingOffsets=text).starting.points(("s",)) == {"s": LATEST}


def test_a_start_that_another_one_goes_before_does_not_matter() -> None:
    assert batch(startingOffsets="latest", startingTimestamp="1").starting.everywhere == time(1)


@pytest.mark.parametrize("text", ["earliest", '{"s": "earliest"}', '{"s": -2}'])
def test_a_read_cannot_end_at_earliest(text: str) -> None:
    assert refused(NEEDED | {"endingOffsets": text}).endswith(": a read cannot end at earliest")


@pytest.mark.parametrize("name", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_json_must_name_all_plain_streams_and_no_other(name: str) -> None:
    needed = NEEDED | {"stream": "s,t"}

    assert "misses 't'" in refused(needed | {name: '{"s": 5}'}, is_streaming=True)
    assert "'u'" in refused(needed | {name: '{"s": 5, "t": 5, "u": 5}'})
    settings = read_settings(needed | {name: '{"s": 5, "t": 5}'}, is_streaming=False)
    assert settings.starting.names == ("s", "t")


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_json_of_an_end_must_name_them_too(name: str) -> None:
    assert f"option {name}: must name" in refused(NEEDED | {name: '{"t": 5}'})


def test_the_streams_of_super_streams_are_judged_by_the_server() -> None:
    options = {"endpoints": "a", "superStream": "s", "startingOffsets": '{"s-0": 5}'}

    assert read_settings(options, is_streaming=False).starting.names == ("s-0",)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"startingOffsets": '{"s": 6}'}, {"endingOffsets": '{"s": 5}'}),
        ({"startingTimestamp": "6"}, {"endingTimestamp": "5"}),
        ({"startingTimestamp": "6"}, {"endingOffsetsByTimestamp": '{"s": 5}'}),
        ({"startingOffsetsByTimestamp": '{"s": 6}'}, {"endingTimestamp": "5"}),
    ],
)
def test_a_read_that_ends_before_it_starts_is_refused(
    start: dict[str, str], end: dict[str, str]
) -> None:
    problem = refused(NEEDED | start | end)

    assert all(f"{name}=" in problem for name in start | end)
    assert problem.endswith("the read would end before it starts")


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": '{"s": 5}', "endingOffsets": '{"s": 5}'},
        {"startingOffsets": '{"s": 9}', "endingTimestamp": "5"},
        {"startingTimestamp": "5", "endingTimestamp": "5"},
        {"startingOffsets": "-9", "endingOffsets": '{"s": 5}'},
    ],
)
def test_a_read_of_nothing_or_of_what_only_the_server_knows_is_right(
    options: dict[str, str],
) -> None:
    batch(**options)


def test_the_least_of_a_batch_is_not_more_than_the_most() -> None:
    problem = refused(
        NEEDED | {"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"}, is_streaming=True
    )

    assert problem == (
        "options minOffsetsPerTrigger='11' and maxOffsetsPerTrigger='10' contradict each other: "
        "the least is more than the most"
    )


def test_a_delay_needs_something_to_wait_for() -> None:
    problem = refused(NEEDED | {"maxTriggerDelay": "1m"}, is_streaming=True)

    assert problem == "option maxTriggerDelay='1m' needs minOffsetsPerTrigger"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadataFields", "header"),
        ("applicationProperties", "map"),
        ("appColumns", "a int"),
        ("includeProperties", "true"),
    ],
)
def test_a_raw_body_has_no_sections(name: str, text: str) -> None:
    problem = refused(NEEDED | {"bodyFormat": "raw", name: text})

    assert problem.startswith(f"options bodyFormat='raw' and {name}=")


def test_a_raw_body_may_come_with_the_place_in_its_chunk() -> None:
    settings = batch(bodyFormat="raw", includeChunkInfo="true", includeProperties="false")

    assert settings.decoding == Decoding(
        "raw", extra_columns=("chunk_id", "entry_index", "sub_index")
    )


def test_a_raw_body_may_come_with_what_is_wrong_with_a_sub_batch() -> None:
    settings = batch(bodyFormat="raw", metadataFields="bad_sub_batch", badSubBatches="raw")

    assert settings.decoding == Decoding(
        "raw", extra_columns=("bad_sub_batch",), bad_sub_batches="raw"
    )


def test_unfiltered_messages_are_matched_beside_filter_values() -> None:
    assert refused(NEEDED | {"filterMatchUnfiltered": "true"}) == (
        "option filterMatchUnfiltered='true' needs filterValues"
    )
    assert batch(filterMatchUnfiltered="false").filter == Filter()


def test_all_contradictions_are_told_in_one_line() -> None:
    with pytest.raises(WrongOption) as caught:
        batch(superStream="t", filterMatchUnfiltered="true", vhost="v", username="u")

    assert len(caught.value.problems) == 3
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "option"),
    [
        (ReadSource(streams=("a",)), "stream"),
        (ReadSource(super_streams=("a",)), "superStream"),
        (ReadSource(assigned=(("a", (1,)),)), "assign"),
        (ReadSource(pattern="^a"), "streamPattern"),
    ],
)
def test_a_source_knows_the_option_that_said_it(source: ReadSource, option: str) -> None:
    assert source.option == option
