"""Paths of RabbitMQ's API: each is there, or told why not."""

from pathlib import Path

import pytest
from starlette.routing import compile_path

from gateway.management.http.absent import reason_of
from gateway.management.http.routes import RESOURCES

OF_RABBITMQ = Path(__file__).with_name("rabbitmq-4.3-paths.txt").read_text("ascii").split()
"""Behind `/api`, with an x in the place of each name."""
HERE = [compile_path(resource.path)[0] for resource in RESOURCES]


def is_here(path: str) -> bool:
    return any(pattern.match(path) for pattern in HERE)


def test_every_path_of_rabbitmq_is_there_or_has_a_reason() -> None:
    paths = [f"/api{path}" for path in OF_RABBITMQ]
    assert len(paths) > 100
    assert not [path for path in paths if not is_here(path) and reason_of(path) is None]


@pytest.mark.parametrize(
    "path",
    ["/api/shovels", "/api/shovels/%2F/x", "/api/federation-links/%2F", "/metrics/per-object",
     "/api/traces/node/x", "/api/top/node/x"],
)  # fmt: skip
def test_what_plugins_add_has_a_reason(path: str) -> None:
    assert reason_of(path)


@pytest.mark.parametrize("path", ["/api/nowhere", "/nowhere", "/api/shovelsx", "/api", "/api/auth"])
def test_what_rabbitmq_has_not_either_has_none(path: str) -> None:
    assert reason_of(path) is None
