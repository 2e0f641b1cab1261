"""A cluster of two members, `a` active, as administrators see it."""

from gateway.broker.cluster import Copies


class TwoMembers:
    """The cluster of one of them; `ClusterControl`.

    Attributes:
        name: That one.
        takeovers: How often it was asked to take over.
        forgotten: Members that were forgotten.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.takeovers = 0
        self.forgotten: list[str] = []
        self.roles = {"a": "active", "b": "following"}

    @property
    def active(self) -> str:
        """The active member."""
        return "the active one is a, at a:5552"

    @property
    def alarms(self) -> list[str]:
        """None."""
        return []

    def members(self) -> list[dict[str, object]]:
        """Return both."""
        return [{"name": name, "role": role} for name, role in self.roles.items()]

    def forget(self, name: str) -> None:
        """Note it."""
        if name not in self.roles:
            raise KeyError(name)
        self.forgotten.append(name)

    def offer_copies(self, url: str) -> Copies:
        """Refuse: there is no directory."""
        raise AssertionError(url)

    def take_over(self) -> None:
        """Count it."""
        self.takeovers += 1
