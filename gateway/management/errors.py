"""Refusals of administrators' requests."""


class AdministrationError(Exception):
    """Nothing was changed; the message says why.

    Attributes:
        code: For programs: what kind of error it is.
    """

    code = "refused"


class WrongRequest(AdministrationError):
    """There is no such request, or its arguments are not what it takes."""

    code = "wrong_request"


class NotFound(AdministrationError):
    """Its object does not exist."""

    code = "not_found"


class Conflict(AdministrationError):
    """It exists already, or exists otherwise."""

    code = "conflict"


class NotAllowed(AdministrationError):
    """This administrator may not do it."""

    code = "not_allowed"


class Failed(AdministrationError):
    """The server could not do it."""

    code = "failed"
