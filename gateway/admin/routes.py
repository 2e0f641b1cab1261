"""Every path of the API, with what each method does there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.admin.bodies import SMALL_BYTES_MAX
from gateway.admin.call import Handler
from gateway.admin.views import connections, server, streams, topology


@dataclass(frozen=True, slots=True)
class Resource:
    """A path and its methods.

    Attributes:
        path: With names in braces; each stands for one segment.
        get: What GET and HEAD do; None where there is nothing.
        put: The same of PUT, and so on.
        body_bytes_max: How large a body may be.
        reads_body: Whether the handler reads the body itself, which need not be an object then.
    """

    path: str
    get: Handler | None = None
    put: Handler | None = None
    post: Handler | None = None
    delete: Handler | None = None
    body_bytes_max: int = SMALL_BYTES_MAX
    reads_body: bool = False

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What each method does."""
        given = {
            "HEAD": self.get,
            "GET": self.get,
            "PUT": self.put,
            "POST": self.post,
            "DELETE": self.delete,
        }
        return {method: handler for method, handler in given.items() if handler is not None}


_HOST: Final = "{virtual_host}"

RESOURCES: Final = (
    Resource("/api/overview", server.overview),
    Resource("/api/whoami", server.whoami),
    Resource("/api/version", server.version),
    Resource("/api/cluster-name", server.cluster_name),
    Resource("/api/nodes", server.list_nodes),
    Resource("/api/nodes/{node}", server.get_node),
    Resource("/api/connections", connections.list_connections),
    Resource(
        "/api/connections/{connection}",
        connections.get_connection,
        delete=connections.close_connection,
    ),
    Resource("/api/vhosts", topology.list_hosts),
    Resource(
        f"/api/vhosts/{_HOST}", topology.get_host, topology.put_host, delete=topology.delete_host
    ),
    Resource(f"/api/vhosts/{_HOST}/connections", connections.list_connections),
    Resource("/api/queues", streams.list_queues),
    Resource(f"/api/queues/{_HOST}", streams.list_queues),
    Resource(
        f"/api/queues/{_HOST}/{{stream}}",
        streams.get_queue,
        streams.put_queue,
        delete=streams.delete_queue,
    ),
    Resource(f"/api/queues/{_HOST}/{{stream}}/bindings", topology.list_bindings),
    Resource("/api/exchanges", topology.list_exchanges),
    Resource(f"/api/exchanges/{_HOST}", topology.list_exchanges),
    Resource(
        f"/api/exchanges/{_HOST}/{{exchange}}",
        topology.get_exchange,
        topology.put_exchange,
        delete=topology.delete_exchange,
    ),
    Resource(f"/api/exchanges/{_HOST}/{{exchange}}/bindings/source", topology.list_bindings),
    Resource(f"/api/exchanges/{_HOST}/{{exchange}}/bindings/destination", topology.no_bindings),
    Resource("/api/bindings", topology.list_bindings),
    Resource(f"/api/bindings/{_HOST}", topology.list_bindings),
    Resource(
        f"/api/bindings/{_HOST}/e/{{exchange}}/q/{{stream}}",
        topology.list_bindings,
        post=topology.post_binding,
    ),
    Resource(
        f"/api/bindings/{_HOST}/e/{{exchange}}/q/{{stream}}/{{key}}",
        topology.get_binding,
        delete=topology.delete_binding,
    ),
    Resource("/api/consumers", connections.list_queue_consumers),
    Resource(f"/api/consumers/{_HOST}", connections.list_queue_consumers),
    Resource("/api/stream/connections", connections.list_connections),
    Resource(f"/api/stream/connections/{_HOST}", connections.list_connections),
    Resource(
        f"/api/stream/connections/{_HOST}/{{connection}}",
        connections.get_connection,
        delete=connections.close_connection,
    ),
    Resource(
        f"/api/stream/connections/{_HOST}/{{connection}}/publishers", connections.publishers_of
    ),
    Resource(f"/api/stream/connections/{_HOST}/{{connection}}/consumers", connections.consumers_of),
    Resource("/api/stream/publishers", connections.list_publishers),
    Resource(f"/api/stream/publishers/{_HOST}", connections.list_publishers),
    Resource(f"/api/stream/publishers/{_HOST}/{{stream}}", connections.list_publishers),
    Resource("/api/stream/consumers", connections.list_consumers),
    Resource(f"/api/stream/consumers/{_HOST}", connections.list_consumers),
)
