"""State that all connections of the protocol share: the broker's parts and the settings."""

from dataclasses import dataclass, field
from typing import Final

from gateway.broker import visit
from gateway.mewbase.durable import Durables
from gateway.settings.mewbase import MewbaseSettings

PROTOCOL: Final = "mewbase"
"""Name of the protocol, as administrators see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(visit.Host):
    """State that all connections share.

    Attributes:
        durables: Durable subscriptions that connections have.
    """

    settings: MewbaseSettings = field(default_factory=MewbaseSettings)
    durables: Durables = field(default_factory=Durables)
