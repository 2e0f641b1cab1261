import pytest

from gateway.broker import errors
from gateway.stream.refusals import Refusal, code_of, reason_of
from hutch.stream.codes import ResponseCode


def test_every_refusal_of_the_broker_has_a_code() -> None:
    refusals = errors.BrokerError.__subclasses__()

    assert len(refusals) >= 5
    for refusal in refusals:
        assert code_of(refusal("reason")) in set(ResponseCode) - {ResponseCode.OK}


def test_a_refusal_says_its_code() -> None:
    assert code_of(Refusal(ResponseCode.NO_OFFSET, "reason")) == ResponseCode.NO_OFFSET


def test_an_error_of_ours_is_no_refusal() -> None:
    assert code_of(KeyError("bug")) is None


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Refusal(ResponseCode.NO_OFFSET, "no offset here"), "no offset here"),
        (errors.StreamDoesNotExist("orders"), "stream 'orders' does not exist"),
        (
            errors.StreamNotAvailable("orders"),
            "stream 'orders' is not available now; the server's log says why",
        ),
        (errors.PreconditionFailed("a rule"), "a rule"),
    ],
)
def test_a_refusal_has_a_reason_that_names_the_stream(refusal: Exception, reason: str) -> None:
    assert reason_of(refusal) == reason
