"""A channel of AMQP 0-9-1 that notes what is asked of it, and messages as it delivers them."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from aiormq.abc import DeliveredMessage
from pamqp import commands as spec
from pamqp.header import ContentHeader

URI = "amqp://ann:secret@h"


class Channel:
    """A channel that notes what is asked of it.

    Attributes:
        asked: Names of methods with their arguments.
        faults: What a method raises.
        published: Futures of confirms, one for each message.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.faults: dict[str, Exception] = {}
        self.published: list[tuple[dict[str, Any], asyncio.Future[Any]]] = []
        self.on_consumer_cancel_callbacks: set[Callable[[Any], None]] = set()
        self.consumer: Any = None
        self.message_count = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any method
        async def method(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            self.asked.append((name, *arguments, *sorted(named.items())))
            if name in self.faults:
                raise self.faults[name]
            return SimpleNamespace(
                message_count=self.message_count, consumer_tag="tag", consumer_count=0
            )

        return method

    async def basic_consume(self, queue: str, consumer: Any, **named: Any) -> Any:  # noqa: ANN401
        self.consumer = consumer
        self.asked.append(("basic_consume", queue, *sorted(named.items())))
        return SimpleNamespace(consumer_tag="tag")

    async def basic_publish(self, body: bytes, **named: Any) -> Any:  # noqa: ANN401
        # As the library does: what cannot be written is refused before it is sent.
        if len(named["routing_key"]) > 255:
            raise ValueError("Routing key too long (max 255 bytes)")
        ContentHeader(body_size=len(body), properties=named["properties"]).marshal()
        confirm = asyncio.get_running_loop().create_future()
        self.published.append(({"body": body, **named}, confirm))
        return await confirm

    def names(self) -> list[str]:
        return [name for name, *_ in self.asked]


def delivered(tag: int = 1, body: bytes = b"body", **given: Any) -> DeliveredMessage:  # noqa: ANN401
    again = given.pop("redelivered", False)
    where = {"exchange": "e", "routing_key": "k"} | given.pop("where", {})
    return DeliveredMessage(
        delivery=spec.Basic.Deliver("tag", tag, redelivered=again, **where),
        header=ContentHeader(body_size=len(body), properties=spec.Basic.Properties(**given)),
        body=body,
        channel=None,  # type: ignore[arg-type]  # it is not asked for
    )
