import pickle

from pyspark_hutch.options.errors import SHOWN_CHARACTERS_MAX, WrongOption, shown


def test_all_problems_stand_in_one_line() -> None:
    error = WrongOption("option a is wrong", "option b is wrong")

    assert str(error) == "option a is wrong; option b is wrong"


def test_an_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(WrongOption("first", "second")))

    assert error.problems == ("first", "second")
    assert str(error) == "first; second"


def test_a_value_is_shown_on_one_line() -> None:
    assert shown("a\nb") == r"'a\nb'"


def test_a_value_is_shown_whole_up_to_a_limit() -> None:
    assert shown("x" * SHOWN_CHARACTERS_MAX) == repr("x" * SHOWN_CHARACTERS_MAX)
    assert shown("x" * (SHOWN_CHARACTERS_MAX + 1)) == repr("x" * (SHOWN_CHARACTERS_MAX - 1) + "…")
