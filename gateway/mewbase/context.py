"""State that all connections of the protocol share: the broker's parts and the settings."""

from dataclasses import dataclass, field
from typing import Final

from gateway.broker.hosts.client_session import SessionContext
from gateway.mewbase.binders.binders import Binders
from gateway.mewbase.durable import Durables
from gateway.mewbase.sources import Reading
from gateway.mewbase.transactions import Held
from gateway.settings.mewbase import MewbaseSettings

PROTOCOL: Final = "mewbase"
"""Name of the protocol, as administrators see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MewbaseContext(SessionContext):
    """State that all connections share.

    Attributes:
        binders: Documents that projections make of events.
        reading: State that the readers of events share.
        settings: The settings of the protocol.
        durables: Durable subscriptions that connections have.
        held: Events of transactions that are open.
    """

    binders: Binders
    reading: Reading
    settings: MewbaseSettings = field(default_factory=MewbaseSettings)
    durables: Durables = field(default_factory=Durables)
    held: Held = field(default_factory=Held)
