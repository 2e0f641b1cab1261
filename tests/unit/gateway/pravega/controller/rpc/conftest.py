"""A controller on a real store, and the contexts of calls to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.pravega.access.callers import Anyone, Caller
from gateway.pravega.controller.rights import minting
from gateway.pravega.controller.rpc.call_context import CallContext
from gateway.server.loop.awaiting import awaited
from tests.controller_rig import World
from tests.unit.gateway.pravega.controller.rpc.call_rig import TOKENS, Of


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A controller that has the scope `scope`."""
    world = World(tmp_path)
    await awaited((await world.open()).open())
    await awaited(world.controller.streams.create_scope("scope"))
    yield world
    await world.close()


@pytest.fixture
def context_of(world: World) -> Of:
    """Return the function that makes the context of a caller's calls."""
    token = minting(TOKENS, world.clock)

    def context_of(caller: Caller) -> CallContext:
        return CallContext(
            controller=world.controller, address=("localhost", 1), caller=caller, token=token
        )

    return context_of


@pytest.fixture
def context(context_of: Of) -> CallContext:
    """Return the context of a caller that may do everything."""
    return context_of(Anyone())
