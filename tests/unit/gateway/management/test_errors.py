from gateway.management.errors import (
    PROBLEMS_SHOWN_MAX,
    SHOWN_CHARACTERS_MAX,
    DefinitionsError,
    shown,
)


def test_of_many_problems_the_first_are_told_and_the_others_counted() -> None:
    lines = str(DefinitionsError(*(f"problem {number}" for number in range(1_000)))).splitlines()

    assert len(lines) == PROBLEMS_SHOWN_MAX + 1
    assert lines[0] == "problem 0"
    assert lines[-1] == f"… and {1_000 - PROBLEMS_SHOWN_MAX} more"


def test_a_value_is_shown_in_one_bounded_line() -> None:
    assert shown("a\nb\x1b[2J") == "'a\\nb\\x1b[2J'"
    assert len(shown("x" * 10_000)) == SHOWN_CHARACTERS_MAX + 1
    assert len(shown(10**4_000)) <= SHOWN_CHARACTERS_MAX + 1
    values: list[object] = [None, True, 1, {}, []]
    assert [shown(value) for value in values] == [
        "null",
        "true",
        "1",
        "an object",
        "a list",
    ]
