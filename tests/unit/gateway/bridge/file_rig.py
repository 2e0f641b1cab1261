"""The bridge's file, written by tests."""

from collections.abc import Callable, Mapping

from gateway.bridge.routes import Route

QUEUE = 'source = { uri = "amqp://h", queue = "q" }'
STREAM = 'target = { uri = "rabbitmq-stream://h", stream = "s" }'

Load = Callable[..., tuple[Route, ...]]
Mistakes = Callable[..., list[str]]


def route(*lines: str, name: str = "r", source: str = QUEUE, target: str = STREAM) -> str:
    return "\n".join(("[[routes]]", f'name = "{name}"', source, target, *lines, ""))


def source(**given: str) -> str:
    return f"source = {table(given)}"


def target(**given: str) -> str:
    return f"target = {table(given)}"


def table(given: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key} = {value}" for key, value in given.items()) + "}"
