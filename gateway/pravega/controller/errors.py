"""Refusals of the controller, which its calls turn into the status that each of them has for it."""


class Refused(Exception):
    """Base of them; the message is one line that names what was refused."""


class BadName(Refused):
    """No scope or stream may have this name."""


class NoSuchScope(Refused):
    """No scope has this name."""


class ScopeExists(Refused):
    """A scope has this name already."""


class ScopeNotEmpty(Refused):
    """The scope has streams."""


class NoSuchStream(Refused):
    """The scope has no stream of this name."""


class StreamExists(Refused):
    """The scope has a stream of this name already."""


class StreamIsSealed(Refused):
    """The stream takes no more."""


class StreamNotSealed(Refused):
    """The stream has to be sealed first."""


class NoSuchTransaction(Refused):
    """The stream has no such transaction, or had it too long ago."""


class InvalidRequest(Refused):
    """The request cannot be right, whatever there is; says why."""


class NoRight(Refused):
    """The caller may not do this."""


class Busy(Refused):
    """The caller's password was not compared; it may come again."""
