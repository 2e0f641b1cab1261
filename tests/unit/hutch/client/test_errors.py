import pickle

import pytest

from hutch.client.errors import Refused, ServerGone, in_words, refusal
from hutch.stream.codes import ResponseCode


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ResponseCode.STREAM_DOES_NOT_EXIST, "does not exist"),
        (ResponseCode.PRECONDITION_FAILED, "was answered with code 17"),
        (999, "was answered with the unknown code 999"),
    ],
)
def test_a_code_is_told_in_words(code: int, words: str) -> None:
    assert words in in_words(code)


def test_a_refusal_names_what_was_asked_and_survives_a_pickle() -> None:
    error = refusal("stream 'a'", ResponseCode.STREAM_DOES_NOT_EXIST)
    again = pickle.loads(pickle.dumps(error))

    assert isinstance(again, Refused)
    assert str(again) == str(error) == "stream 'a' does not exist"
    assert again.code == ResponseCode.STREAM_DOES_NOT_EXIST


def test_a_stream_that_is_not_available_is_worth_another_try() -> None:
    error = refusal("stream 'a'", ResponseCode.STREAM_NOT_AVAILABLE)

    assert isinstance(error, ServerGone)
    assert str(error) == "stream 'a' is not available now"


def test_a_refusal_has_the_servers_own_words_if_it_gave_any() -> None:
    error = refusal("plan_streams", ResponseCode.PRECONDITION_FAILED, "too many borders")

    assert str(error).startswith("plan_streams was answered with code 17")
    assert str(error).endswith(": too many borders")
