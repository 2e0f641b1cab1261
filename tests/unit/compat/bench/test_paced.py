from compat.bench.paced import due_ns


def test_messages_are_due_at_even_times_without_drift() -> None:
    times = [due_ns(7, number, 3) for number in range(7)]
    assert times[::3] == [7, 1_000_000_007, 2_000_000_007]
    assert times[1] == 333_333_340
