"""The little that administrators see of a member that follows: it has no store to look into."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from gateway.broker.service import ServiceState
from gateway.management.errors import Conflict, WrongRequest
from gateway.management.http.views.health import LIVE, failed, passed
from gateway.management.requests.service import described, forgotten

_READ: Final = ("GET", "HEAD")


class Standby:
    """A member that follows, as administrators see it."""

    def __init__(self, service: ServiceState) -> None:
        """Begin with the state of a server that has a cluster."""
        assert service.cluster is not None
        self._cluster = service.cluster
        self._about = service.about

    @property
    def reason(self) -> str:
        """The reason that nothing is served here, and where it is."""
        return f"member {self._cluster.name} follows the log; {self._cluster.active}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request over HTTP: the process lives, and is not ready."""
        if scope["type"] != "http":
            return
        is_live = scope["method"] in _READ and scope["path"] == LIVE
        await (passed() if is_live else failed(self.reason))(scope, receive, send)

    async def answer(self, name: str, arguments: Mapping[str, Any], body: bytes) -> object:
        """Answer a request that came by the admin socket. Raises AdministrationError."""
        del body  # no request here has one
        cluster = self._cluster
        match name:
            case "status":
                return {
                    **described(self._about),
                    "follows": self.reason,
                    "is_disk_full": False,
                    "listeners": [],
                    "alarms": [],
                    "ended": [],
                    "connections": 0,
                    "members": cluster.members(),
                }
            case "members":
                return cluster.members()
            case "takeover":
                cluster.take_over()
                return None
            case "forget_member":
                member = arguments.get("name")
                if not isinstance(member, str):
                    raise WrongRequest("name is a text")
                await asyncio.to_thread(forgotten, cluster, member)
                return None
        raise Conflict(self.reason)
