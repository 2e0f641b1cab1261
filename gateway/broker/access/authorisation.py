"""Authorisation: the one place that every way to the server asks.

The wire, the HTTP API and the commands of administrators say what they are about to do as a list
of demands; `refused` judges it. A super stream is its exchange and its partitions, and to make or
remove one takes rights on all of them, whichever way the request came.

Source: RabbitMQ, "Access Control"; RabbitMQ 4.3 as observed.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from gateway.broker.access.access import Access
from gateway.broker.access.model import Right

DEFAULT_EXCHANGE: Final = "amq.default"
"""Name of the exchange without a name, where permissions are looked up."""


class Demand(NamedTuple):
    """Something that takes a right on a name."""

    rights: tuple[Right, ...]
    """Any of these will do."""
    name: str

    def __str__(self) -> str:
        return f"no {' or '.join(right.value for right in self.rights)} on {self.name!r}"


def refused(
    access: Access, user: str, virtual_host: str, demands: Iterable[Demand]
) -> Demand | None:
    """Return the first demand that a user does not meet, None if it may go on."""
    may = access.may
    for demand in demands:
        for right in demand.rights:
            if may(user, virtual_host, right, demand.name):
                break
        else:
            return demand
    return None


def to_configure(name: str) -> list[Demand]:
    """Return the demands to create or delete a stream or an exchange."""
    return [Demand((Right.CONFIGURE,), name)]


def to_read(name: str) -> list[Demand]:
    """Return the demands to look into a stream."""
    return [Demand((Right.READ,), name)]


def name_of_exchange(exchange: str) -> str:
    """Return what an exchange is called where permissions are looked up."""
    return exchange or DEFAULT_EXCHANGE


def to_publish(exchange: str) -> list[Demand]:
    """Return the demands to publish to an exchange, to whichever streams that leads."""
    return [Demand((Right.WRITE,), name_of_exchange(exchange))]


def to_bind(source: str, destination: str) -> list[Demand]:
    """Return the demands to bind a stream to an exchange, or to undo that."""
    return [Demand((Right.WRITE,), destination), Demand((Right.READ,), source)]


def to_manage_super_stream(super_stream: str, partitions: Iterable[str] = ()) -> list[Demand]:
    """Return the demands to create or delete a super stream with these partitions.

    Configure and read on the super stream, configure and write on each partition.
    """
    names = list(partitions)
    return [
        *to_configure(super_stream),
        *(Demand((Right.CONFIGURE,), name) for name in names),
        Demand((Right.READ,), super_stream),
        *(Demand((Right.WRITE,), name) for name in names),
    ]
