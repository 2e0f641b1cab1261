from pathlib import Path

import pytest

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.preparation.sources import (
    BUDGETS,
    fate_of,
    local,
    name_of,
    reading,
    writing,
)

GIVEN = {"endpoints": "localhost", "stream": "orders"}


def test_a_job_begins_at_the_first_row_and_has_budgets() -> None:
    assert reading(GIVEN) == {**GIVEN, "startingOffsets": "earliest", **BUDGETS}


@pytest.mark.parametrize(
    "start", [{"STARTINGOFFSETS": "latest"}, {"startingTimestamp": "1700000000000"}]
)
def test_a_start_that_is_given_counts(start: dict[str, str]) -> None:
    assert reading(GIVEN | start) == GIVEN | start | BUDGETS


def test_a_budget_that_is_given_is_the_only_one() -> None:
    found = reading({**GIVEN, "maxOffsetsPerTrigger": "10"})

    assert "maxBytesPerTrigger" not in found
    assert found["maxOffsetsPerTrigger"] == "10"


@pytest.mark.parametrize("wrong", [{"stream": ""}, {"steam": "x"}, {"endingOffsets": "latest"}])
def test_wrong_options_of_a_read_are_told(wrong: dict[str, str]) -> None:
    with pytest.raises(WrongArgument, match=f"option {next(iter(wrong))}"):
        reading(GIVEN | wrong)


def test_options_of_a_write_stay_as_they_are() -> None:
    assert writing(GIVEN) == GIVEN


def test_a_job_that_is_given_a_number_for_its_batches_refuses() -> None:
    with pytest.raises(WrongArgument, match="option txnAppId: a job names and numbers its batches"):
        writing({**GIVEN, "txnAppId": "nightly", "txnVersion": "1"})


def test_wrong_options_of_a_write_are_told() -> None:
    with pytest.raises(WrongArgument, match="option compression"):
        writing({**GIVEN, "compression": "best"})


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"stream": "orders"}, "orders"),
        ({"SuperStream": "events-1.x_y"}, "events-1.x_y"),
    ],
)
def test_a_source_has_the_name_of_its_stream(options: dict[str, str], name: str) -> None:
    assert name_of(options) == name


@pytest.mark.parametrize("stream", ["a/b", "a,b", "..", ".hidden", "ä", "x" * 200])
def test_a_name_that_is_none_of_a_file_is_changed_into_one(stream: str) -> None:
    name = name_of({"stream": stream})

    assert "/" not in name
    assert not name.startswith(".")
    assert 0 < len(name.encode()) < 120


def test_two_sources_have_two_names() -> None:
    assert len({name_of({"stream": text}) for text in ("a/b", "a-b", "a,b", "a,b,c")}) == 4


def test_a_folder_of_this_machine_is_absolute() -> None:
    assert local("lake") == Path.cwd() / "lake"
    assert local("file:///tmp/lake") == Path("/tmp/lake")


def test_a_folder_elsewhere_is_refused() -> None:
    with pytest.raises(WrongArgument, match="s3://lake is not a folder of this machine"):
        local("s3://lake")


@pytest.mark.parametrize(
    ("given", "fate"),
    [({}, "fail"), ({"badSubBatches": "skip"}, "skip"), ({"BADSUBBATCHES": "Raw"}, "raw")],
)
def test_what_becomes_of_bad_sub_batches_is_found_among_the_options(
    given: dict[str, str], fate: str
) -> None:
    assert fate_of(GIVEN | given) == fate
