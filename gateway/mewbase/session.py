"""State of one connection: its login, how it reads errors, and its subscriptions' ids; no I/O."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gateway.mewbase.wire.reading import FRAME_BYTES_MAX

_NUMBERS_END: Final = 1 << 31


@dataclass(slots=True)
class LoginSession:
    """State of one connection.

    Attributes:
        frame_limit: Size of the largest frame that is taken now, in bytes.
        errors_as_text: Whether the numbers of errors are strings. None: as the CONNECT tells.
        has_page_form: Whether the last CONNECT had the form of the protocol's page.
        user: The user that logged in; empty before.
    """

    frame_limit: int
    errors_as_text: bool | None = None
    has_page_form: bool = False
    user: str = ""
    _last_subscription: int = -1

    @property
    def is_connected(self) -> bool:
        """True if a CONNECT was accepted."""
        return bool(self.user)

    def take_form(self, names: Collection[bytes]) -> None:
        """Learn the form from the fields of a CONNECT: the client of 2016 always sends `authInfo`.

        That client dies of an error whose number is a string, which is what the page promises.
        """
        forced = self.errors_as_text
        self.has_page_form = b"authInfo" not in names if forced is None else forced

    def named_in_answer(self, request_id: int | None) -> int | None:
        """Return the request that the answer to a CONNECT names; the page wants one in any case."""
        return 0 if request_id is None and self.has_page_form else request_id

    def log_in(self, user: str) -> None:
        """Note that a CONNECT of a user was accepted."""
        self.user = user
        self.frame_limit = FRAME_BYTES_MAX

    def new_subscription(self) -> int:
        """Return an id that no subscription of the connection has had; they begin at 0."""
        self._last_subscription = (self._last_subscription + 1) % _NUMBERS_END
        return self._last_subscription
