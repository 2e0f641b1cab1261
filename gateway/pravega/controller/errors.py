"""Refusals of the controller, which its calls turn into the status that each of them has for it."""


class Refused(Exception):
    """Base of them; the message is one line that names what was refused."""


class BadName(Refused):
    """No scope, stream or table may have this name."""


class NoSuchScope(Refused):
    """No scope has this name."""


class ScopeExists(Refused):
    """A scope has this name already."""


class ScopeNotEmpty(Refused):
    """The scope has streams or tables."""


class NoSuchStream(Refused):
    """The scope has no stream of this name."""


class StreamExists(Refused):
    """The scope has a stream of this name already."""


class StreamIsSealed(Refused):
    """The stream takes no more."""


class StreamNotSealed(Refused):
    """The stream has to be sealed first."""


class TooFewSegments(Refused):
    """The stream would have fewer segments than its policy says."""


class NoSuchTable(Refused):
    """The scope has no table of this name."""


class TableExists(Refused):
    """The scope has a table of this name already."""


class NoSuchTransaction(Refused):
    """The stream has no such transaction, or had it too long ago."""


class NoSuchGroup(Refused):
    """The scope has no group of readers of this name, or the stream does not wait for it."""


class OtherGroup(Refused):
    """The group of readers has another identity: it was deleted and made anew."""


class OldGeneration(Refused):
    """The group of readers has been configured anew meanwhile."""


class NoSuchWriter(Refused):
    """The stream has no times of this writer."""


class InvalidRequest(Refused):
    """The request cannot be right, whatever there is; says why."""


class NoRight(Refused):
    """The caller may not do this."""


class Busy(Refused):
    """The caller's password was not compared; it may come again."""
