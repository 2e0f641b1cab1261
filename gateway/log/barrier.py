"""Wait until all that a log has taken is committed."""

from typing import TYPE_CHECKING

from gateway.pending import Pending

if TYPE_CHECKING:
    from gateway.log.log import StreamLog


class Barrier:
    """A sink for which a confirm means that everything before it is committed."""

    def __init__(self) -> None:
        self.passed: Pending[None] = Pending()

    def confirm(self, tokens: bytes) -> None:
        """Pass. It is called once, since a barrier stands in one place."""
        del tokens
        self.passed.settle(None)

    def lost(self) -> None:
        """Pass too: nothing more will be committed."""
        self.passed.settle(None)


def when_all_committed(log: "StreamLog") -> Pending[None]:
    """Return a Pending, settled when all taken so far is committed (or the log failed)."""
    barrier = Barrier()
    log.confirm_when_committed(barrier, b"")
    return barrier.passed
