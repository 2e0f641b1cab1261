"""The cluster that this process is a member of, as administrators and other members see it."""

from pathlib import Path
from typing import Protocol


class DescribedCopy(Protocol):
    """A copy of the active member's directory."""

    def described(self) -> dict[str, object]:
        """Return what the new member has to know, as JSON can hold it."""
        ...


class Copies(Protocol):
    """The copies that are under way. Any thread may call it."""

    def lets_in(self, member: str, token: str) -> bool:
        """Return whether this is the token of that member."""
        ...

    def begin(self, member: str, known: str = "") -> DescribedCopy:
        """Return the copy that a member has begun with, else begin one; blocks. Raises OSError."""
        ...

    def path(self, member: str, index: int) -> Path | None:
        """Return the path of a file of its copy; None if there is none."""
        ...

    def end(self, member: str) -> None:
        """Forget its copy."""
        ...


class ClusterControl(Protocol):
    """The cluster that this process is a member of, as administrators see it."""

    @property
    def name(self) -> str:
        """The name of this member."""
        ...

    @property
    def active(self) -> str:
        """The active member and its address, in words."""
        ...

    @property
    def alarms(self) -> list[str]:
        """The alarms of the cluster that are on: `log_away`, `log_full`."""
        ...

    def members(self) -> list[dict[str, object]]:
        """Return all members, by name, as JSON can hold them."""
        ...

    def forget(self, name: str) -> None:
        """Forget a member that will not come back; blocks.

        Raises KeyError: there is none of that name. StoreError: the log is away.
        """
        ...

    def offer_copies(self, url: str) -> "Copies":
        """Have this member, which is active, give copies of its directory, at a URL."""
        ...

    def take_over(self) -> None:
        """Have this member, which follows, take over soon."""
        ...
