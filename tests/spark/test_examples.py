"""The scripts in examples/spark, run as they stand, on Hutch and on RabbitMQ."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import Place
from tests.spark.naming import kept_name

SCRIPTS = Path(__file__).parents[2] / "examples" / "spark"


def run(name: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a script against a server; return the values of its variables at its end."""
    monkeypatch.setenv("STREAM_ENDPOINTS", f"{place.host}:{place.port}")
    with kept_name():
        return runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")


@pytest.mark.usefixtures("spark")
def test_first_steps_read_each_order_once(either: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    left = run("first_steps", either, monkeypatch)

    assert left["totals"] == {"Ada": 1299, "Ben": 350}
    assert (left["after_first_run"], left["after_second_run"]) == (3, 4)


@pytest.mark.usefixtures("spark")
def test_github_events_are_counted_with_and_without_a_schema(
    either: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = run("github_events", either, monkeypatch)

    events = left["events"]
    of_repository = [event["repo"]["name"] for event in events]
    pushes = [event for event in events if event["type"] == "PushEvent"]
    assert dict(left["top_repositories"]) == {
        name: of_repository.count(name) for name in set(of_repository)
    }
    assert left["pushed_commits"] == {
        name: sum(push["payload"]["size"] for push in pushes if push["repo"]["name"] == name)
        for name in {push["repo"]["name"] for push in pushes}
    }
    assert left["stars"] == sum(event["type"] == "WatchEvent" for event in events) == 200


@pytest.mark.usefixtures("spark")
def test_taxi_trips_of_a_zone_are_in_one_partition_and_in_the_sums(
    either: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = run("taxi_trips", either, monkeypatch)

    assert sum(left["rows_by_partition"].values()) == left["COUNT"]
    assert left["rows_by_partition"].keys() == {0, 1, 2}
    assert tuple(left["most_partitions_of_a_zone"]) == (1,)
    assert left["trips_in_zones"] == dict.fromkeys(range(100, 112), left["COUNT"] // 12)


@pytest.mark.usefixtures("spark")
def test_sensor_readings_are_in_their_windows_unless_they_are_too_late(
    either: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = run("sensor_readings", either, monkeypatch)

    assert left["first"] == {}
    assert left["second"] == {("roof", "08:00"): 5, ("roof", "08:05"): 5}
    assert left["third"] == left["second"] | {("roof", "08:20"): 1}


@pytest.mark.usefixtures("spark")
def test_a_stream_copy_has_each_row_once_also_with_a_new_checkpoint(
    either: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = run("stream_copy", either, monkeypatch)

    assert left["after_copy"] == 500
    assert left["after_next_run"] == 600
    assert left["after_new_checkpoint"] == 600


@pytest.mark.usefixtures("spark")
def test_a_replay_begins_at_its_time_is_split_and_tells_its_lag(
    either: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = run("replay", either, monkeypatch)

    assert tuple(left["replayed"]) == (6_000, 4_000, 9_999)
    assert (left["tail"], left["part"]) == (100, 250)
    assert len(left["rows_by_task"]) == 4
    assert sum(left["rows_by_task"]) == 10_000
    assert left["lags"][-1] == 0
    assert left["lags"] == sorted(left["lags"], reverse=True)
    assert left["lags"][0] > 0


def test_every_script_has_its_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")

    assert [path.stem for path in SCRIPTS.glob("*.py") if f'run("{path.stem}"' not in text] == []
