"""Refusals of the controller, which its calls turn into the status that each of them has for it."""


class ChangeRefused(Exception):
    """Base of them; the message is one line that names the refused thing."""


class BadName(ChangeRefused):
    """No scope, stream or table may have this name."""


class NoSuchScope(ChangeRefused):
    """No scope has this name."""


class ScopeExists(ChangeRefused):
    """A scope has this name already."""


class ScopeNotEmpty(ChangeRefused):
    """The scope has streams or tables."""


class NoSuchStream(ChangeRefused):
    """The scope has no stream of this name."""


class StreamExists(ChangeRefused):
    """The scope has a stream of this name already."""


class StreamIsSealed(ChangeRefused):
    """The stream takes no more."""


class StreamNotSealed(ChangeRefused):
    """The stream has to be sealed first."""


class TooFewSegments(ChangeRefused):
    """The stream would have fewer segments than its policy says."""


class NoSuchTable(ChangeRefused):
    """The scope has no table of this name."""


class TableExists(ChangeRefused):
    """The scope has a table of this name already."""


class NoSuchTransaction(ChangeRefused):
    """The stream has no such transaction, or had it too long ago."""


class NoSuchGroup(ChangeRefused):
    """The scope has no group of readers of this name, or the stream does not wait for it."""


class OtherGroup(ChangeRefused):
    """The group of readers has another identity: it was deleted and made anew."""


class OldGeneration(ChangeRefused):
    """The group of readers has been configured anew meanwhile."""


class NoSuchWriter(ChangeRefused):
    """The stream has no times of this writer."""


class InvalidRequest(ChangeRefused):
    """The request cannot be right, whatever there is; says why."""


class NoRight(ChangeRefused):
    """The caller may not do this."""


class Busy(ChangeRefused):
    """The caller's password was not compared; it may come again."""
