"""Refusals of administrators' changes, in sentences for them."""


class AccessError(Exception):
    """Base: nothing was changed, and the message says why."""


class NoSuchUser(AccessError):
    """There is no user of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no user {name!r}")


class NoSuchVirtualHost(AccessError):
    """There is no virtual host of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no virtual host {name!r}")


class NoSuchPermission(AccessError):
    """The user has no permissions in that virtual host."""

    def __init__(self, user: str, virtual_host: str) -> None:
        super().__init__(f"user {user!r} has no permissions in virtual host {virtual_host!r}")


class VirtualHostExists(AccessError):
    """There is a virtual host of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"virtual host {name!r} exists")


class VirtualHostBusy(AccessError):
    """It is being deleted, or its deletion has failed; it can be deleted again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"virtual host {name!r} is being deleted")


class Unusable(AccessError):
    """A name, pattern or limit that cannot be used."""
