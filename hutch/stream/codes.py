"""The codes that a reply may carry, and their meanings."""

from enum import IntEnum


class ResponseCode(IntEnum):
    """Outcome of a request, as a u16 on the wire.

    Source: RabbitMQ stream protocol, Response Codes; 20 and 21 observed on RabbitMQ 4.3.
    """

    OK = 1
    STREAM_DOES_NOT_EXIST = 2
    SUBSCRIPTION_ID_ALREADY_EXISTS = 3
    SUBSCRIPTION_ID_DOES_NOT_EXIST = 4
    STREAM_ALREADY_EXISTS = 5
    STREAM_NOT_AVAILABLE = 6
    SASL_MECHANISM_NOT_SUPPORTED = 7
    AUTHENTICATION_FAILURE = 8
    SASL_ERROR = 9
    SASL_CHALLENGE = 10
    AUTHENTICATION_FAILURE_LOOPBACK = 11
    VIRTUAL_HOST_ACCESS_FAILURE = 12
    UNKNOWN_FRAME = 13
    FRAME_TOO_LARGE = 14
    INTERNAL_ERROR = 15
    ACCESS_REFUSED = 16
    PRECONDITION_FAILED = 17
    PUBLISHER_DOES_NOT_EXIST = 18
    NO_OFFSET = 19
    SASL_CANNOT_CHANGE_MECHANISM = 20
    SASL_CANNOT_CHANGE_USERNAME = 21

    @property
    def phrase(self) -> str:
        """The code in words, as in the reason of a Close frame: `unknown frame`."""
        return self.name.lower().replace("_", " ")


def in_words(code: int) -> str:
    """Return the words of a code that a peer may have sent; the number if there are none."""
    try:
        return ResponseCode(code).phrase
    except ValueError:
        return str(code)
