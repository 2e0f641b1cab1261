"""Figures of a cluster, and the lanes in which its rows are measured."""

import pytest

from compat.bench.cluster import Place
from compat.bench.cluster_rows import CLUSTER_ROWS
from compat.bench.cluster_steps import (
    CLUSTER_STEPS,
    catch_up_figures,
    in_bytes,
    is_level,
    measured,
    works_of,
)
from compat.bench.row import MIB
from compat.bench.servers import CLUSTER, CLUSTER_SERVERS, HUTCH_DISK, ServerName
from compat.bench.targets import TARGETS

NAMES = {row.name for row in CLUSTER_ROWS}


def rows_of(server: ServerName) -> set[str]:
    """Return the rows that are measured on a server."""
    steps = [step for step in CLUSTER_STEPS if server in step.servers]
    return {
        row for step in steps for row in (works_of(server) if step.run is measured else step.rows)
    }


def test_a_cluster_is_measured_in_every_row_and_last_in_the_one_that_stops_a_member() -> None:
    assert rows_of(CLUSTER) == NAMES
    assert [*works_of(CLUSTER)][-1] == "cluster_catch_up"


def test_both_sides_of_every_target_are_measured() -> None:
    targets = [each for each in TARGETS if each.row in NAMES]

    assert {each.row for each in targets} == NAMES
    for target in targets:
        for server in filter(None, (target.subject, target.base)):
            assert server in CLUSTER_SERVERS
            assert target.row in rows_of(server), (target.row, server)


def test_no_row_of_a_cluster_compares_it_with_a_plain_server_of_another_durability() -> None:
    assert {each.base for each in TARGETS if each.row in NAMES} <= {*CLUSTER_SERVERS, None}
    assert HUTCH_DISK in CLUSTER_SERVERS


def test_rates_of_two_sizes_of_messages_are_compared_in_bytes() -> None:
    # 2 MiB a second at 10 ms of CPU a MiB
    small = in_bytes({"rate": 2_048, "cpu": 1e6 * 0.01 / 1_024, "seconds": 1.0}, 1_024)
    large = in_bytes({"rate": 2, "cpu": 1e6 * 0.01, "seconds": 1.0}, MIB)

    assert small == pytest.approx(large)
    assert large == pytest.approx({"rate": 2 * MIB, "cpu": 0.01, "seconds": 1.0})


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(11, 5, 2.0), True),
        (Place(11, 5, 2.1), False),
        (Place(10, 0, 0.0), False),  # what it told before it was stopped
    ],
)
def test_a_follower_is_level_two_seconds_behind_and_only_by_what_it_told_since(
    place: Place,
    *,
    expected: bool,
) -> None:
    assert is_level(place, begin=10) is expected


def test_a_follower_is_compared_by_what_each_has_stored() -> None:
    figures = catch_up_figures(
        written=100 * MIB, applied=150 * MIB, behind=10 * MIB, took_s=5.0, cpu_s=(2.0, 1.5)
    )

    assert figures == pytest.approx(
        {
            "active": 20 * MIB,
            "follower": 30 * MIB,
            "speed": 1.5,
            "active_cpu": 0.02,
            "follower_cpu": 0.01,
            "cost": 0.5,
            "behind": 10 * MIB,
        }
    )
