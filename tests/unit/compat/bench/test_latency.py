from compat.bench.latency import percentiles


def test_percentiles_are_in_microseconds_and_behind_their_prefix() -> None:
    found = percentiles([number * 1_000 for number in range(1_000, 0, -1)], "late_")
    assert found == {"late_p50": 501.0, "late_p99": 991.0, "late_p999": 1_000.0}
