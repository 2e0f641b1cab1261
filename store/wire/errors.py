"""The error of a peer that breaks the protocol."""


class WireError(Exception):
    """Bytes that no peer may send: the connection is to be closed.

    The protocol has no reply for them. The message is one line that says what is wrong.
    """
