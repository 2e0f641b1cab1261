"""A list of connections that is kept elsewhere, as fronts see it."""

from collections.abc import Callable
from typing import TypeAlias

from gateway.server.front import Ports

Entered: TypeAlias = Callable[[Ports], Callable[[], object]]
"""Notes a client that has sent its first frame; returns what to call when it is gone."""


def unnoted(_ports: Ports) -> Callable[[], object]:
    """Note nothing: there is no list."""
    return _nothing


def _nothing() -> None:
    pass
