import pytest

from pyspark_hutch.options.checking import check_any, likely_uses
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.option import ALL, READ, WRITE, Use

NEEDED = {"endpoints": "localhost", "stream": "s"}


def refused(options: dict[str, str]) -> str:
    with pytest.raises(WrongOption) as caught:
        check_any(options)
    return str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"endingOffsets": "latest"},
        {"maxOffsetsPerTrigger": "1"},
        {"delivery": "none"},
        {"startingOffsets": "latest"},
        {"delivery": "dedup", "publishingIdColumn": "a", "producerKeyColumn": "b"},
        {"delivery": "none", "endingOffsets": "latest"},
    ],
)
def test_options_that_do_for_something_are_right(options: dict[str, str]) -> None:
    check_any(NEEDED | options)


@pytest.mark.parametrize("options", [{}, {"path": "x"}, {"provider": "hutch", "owner": "me"}])
def test_where_all_are_of_spark_nothing_is_missed(options: dict[str, str]) -> None:
    check_any(options)


def test_a_write_may_leave_its_stream_to_the_rows() -> None:
    check_any({"endpoints": "localhost", "compression": "gzip"})


def test_a_read_may_not() -> None:
    assert "option stream is missing" in refused({"endpoints": "a", "minPartitions": "3"})


def test_options_of_a_batch_and_of_a_streaming_read_contradict_each_other() -> None:
    problem = refused(NEEDED | {"endingOffsets": "latest", "maxOffsetsPerTrigger": "1"})

    assert problem == (
        "option maxOffsetsPerTrigger='1': is for a streaming read, and this is a batch read"
    )


def test_what_is_wrong_for_all_is_told_alone() -> None:
    problem = refused(NEEDED | {"minPartitions": "x", "maxOffsetsPerTrigger": "1"})

    assert problem == "option minPartitions='x': takes a whole number from 1 to 100000"


@pytest.mark.parametrize(
    ("names", "uses"),
    [
        (set(), ALL),
        ({"stream", "path", "client.x", "unknown"}, ALL),
        ({"stream", "endingoffsets"}, READ),
        ({"minpartitions"}, READ),
        ({"delivery"}, WRITE),
        ({"delivery", "minpartitions"}, ALL),
    ],
)
def test_options_tell_what_they_are_for(names: set[str], uses: Use) -> None:
    assert likely_uses(names) == uses
