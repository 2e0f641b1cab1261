"""Every path of the API, with what each method does there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.management.administration import Role
from gateway.management.http.bodies import LARGE_BYTES_MAX, MESSAGE_BYTES_MAX, SMALL_BYTES_MAX
from gateway.management.http.call import Handler
from gateway.management.http.views import (
    certificates,
    connections,
    definitions,
    operator_policies,
    people,
    records,
    server,
    streams,
    topology,
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A path and its methods.

    Attributes:
        path: With names in braces; each stands for one segment.
        get: What GET and HEAD do; None where there is nothing.
        put: The same of PUT, and so on.
        body_bytes_max: How large a body may be.
        body_role: Whose bodies are read at all; None where everybody's are.
        reads_body: Whether the handler reads the body itself, which need not be an object then.
    """

    path: str
    get: Handler | None = None
    put: Handler | None = None
    post: Handler | None = None
    delete: Handler | None = None
    body_bytes_max: int = SMALL_BYTES_MAX
    body_role: Role | None = None
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
_QUORUM_QUEUES: Final = "/api/health/checks/quorum-queues-without-elected-leaders"

RESOURCES: Final = (
    Resource("/api/overview", server.overview),
    Resource("/api/whoami", server.whoami),
    Resource("/api/version", server.version),
    Resource("/api/cluster-name", server.cluster_name),
    Resource("/api/nodes", server.list_nodes),
    Resource("/api/nodes/{node}", server.get_node),
    Resource("/api/feature-flags", server.nothing),
    Resource("/api/channels", connections.list_channels),
    Resource("/api/topic-permissions", people.list_topic_permissions),
    Resource(f"/api/vhosts/{_HOST}/topic-permissions", people.list_topic_permissions),
    Resource("/api/users/{user}/topic-permissions", people.list_topic_permissions),
    Resource("/api/parameters", people.list_parameters),
    Resource("/api/parameters/{component}", people.list_parameters),
    Resource(f"/api/parameters/{{component}}/{_HOST}", people.list_parameters),
    Resource(
        f"/api/parameters/{{component}}/{_HOST}/{{name}}",
        people.get_parameter,
        people.put_parameter,
        delete=people.delete_parameter,
    ),
    Resource("/api/auth/attempts/{node}", server.list_attempts, delete=server.reset_attempts),
    Resource(
        "/api/auth/attempts/{node}/source",
        server.list_attempts_by_source,
        delete=server.reset_attempts,
    ),
    Resource("/api/global-parameters", people.list_global_parameters),
    Resource("/api/operator-policies", operator_policies.list_all),
    Resource(f"/api/operator-policies/{_HOST}", operator_policies.list_all),
    Resource(
        f"/api/operator-policies/{_HOST}/{{policy}}",
        operator_policies.get,
        operator_policies.put,
        delete=operator_policies.delete,
    ),
    Resource(f"/api/aliveness-test/{_HOST}", server.aliveness),
    Resource("/api/health/checks/alarms", server.check_alarms),
    Resource("/api/health/checks/local-alarms", server.check_alarms),
    Resource("/api/health/checks/virtual-hosts", server.check_hosts),
    Resource("/api/health/checks/is-in-service", server.check_service),
    Resource("/api/health/checks/ready-to-serve-clients", server.check_service),
    Resource("/api/health/checks/node-is-quorum-critical", server.check_quorum),
    Resource("/api/health/checks/below-node-connection-limit", server.check_connections),
    Resource(
        "/api/health/checks/certificate-expiration/{within}/{unit}",
        certificates.check_certificates,
    ),
    Resource("/api/health/checks/metadata-store/initialized", server.check_store),
    Resource("/api/health/checks/metadata-store/initialized/with-data", server.check_store),
    Resource(f"{_QUORUM_QUEUES}/all-vhosts", server.check_quorum_queues),
    Resource(f"{_QUORUM_QUEUES}/all-vhosts/pattern/{{pattern}}", server.check_quorum_queues),
    Resource(f"{_QUORUM_QUEUES}/vhost/{_HOST}", server.check_quorum_queues),
    Resource(f"{_QUORUM_QUEUES}/vhost/{_HOST}/pattern/{{pattern}}", server.check_quorum_queues),
    Resource("/api/health/checks/port-listener/{port}", server.check_port),
    Resource("/api/health/checks/protocol-listener/{protocol}", server.check_protocol),
    Resource(
        "/api/definitions",
        definitions.get_definitions,
        post=definitions.post_definitions,
        body_bytes_max=LARGE_BYTES_MAX,
        body_role=Role.ADMINISTRATOR,
        reads_body=True,
    ),
    Resource(
        f"/api/definitions/{_HOST}",
        definitions.get_definitions,
        post=definitions.post_definitions,
        body_bytes_max=LARGE_BYTES_MAX,
        body_role=Role.ADMINISTRATOR,
        reads_body=True,
    ),
    Resource("/api/users", people.list_users),
    Resource("/api/users/bulk-delete", post=people.delete_users),
    Resource("/api/users/without-permissions", people.list_users_without_permissions),
    Resource("/api/users/{user}", people.get_user, people.put_user, delete=people.delete_user),
    Resource("/api/users/{user}/permissions", people.list_permissions),
    Resource("/api/permissions", people.list_permissions),
    Resource(
        f"/api/permissions/{_HOST}/{{user}}",
        people.get_permission,
        people.put_permission,
        delete=people.delete_permission,
    ),
    Resource(f"/api/vhosts/{_HOST}/permissions", people.list_permissions),
    Resource("/api/vhost-limits", people.list_host_limits),
    Resource(f"/api/vhost-limits/{_HOST}", people.list_host_limits),
    Resource(
        f"/api/vhost-limits/{_HOST}/{{limit}}",
        put=people.put_host_limit,
        delete=people.delete_host_limit,
    ),
    Resource("/api/user-limits", people.list_user_limits),
    Resource("/api/user-limits/{user}", people.list_user_limits),
    Resource(
        "/api/user-limits/{user}/{limit}",
        put=people.put_user_limit,
        delete=people.delete_user_limit,
    ),
    Resource("/api/policies", people.list_policies),
    Resource(f"/api/policies/{_HOST}", people.list_policies),
    Resource(
        f"/api/policies/{_HOST}/{{policy}}",
        people.get_policy,
        people.put_policy,
        delete=people.delete_policy,
    ),
    Resource("/api/connections", connections.list_connections),
    Resource(
        "/api/connections/{connection}",
        connections.get_connection,
        delete=connections.close_connection,
    ),
    Resource(
        "/api/connections/username/{user}",
        connections.list_connections_of_user,
        delete=connections.close_connections_of_user,
    ),
    Resource("/api/connections/{connection}/channels", connections.list_channels),
    Resource("/api/vhosts", topology.list_hosts),
    Resource(
        f"/api/vhosts/{_HOST}", topology.get_host, topology.put_host, delete=topology.delete_host
    ),
    Resource(f"/api/vhosts/{_HOST}/connections", connections.list_connections),
    Resource(f"/api/vhosts/{_HOST}/channels", connections.list_channels),
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
    Resource(
        f"/api/exchanges/{_HOST}/{{exchange}}/publish",
        post=records.publish,
        body_bytes_max=MESSAGE_BYTES_MAX,
    ),
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
    Resource(f"/api/stream/super-streams/{_HOST}/{{super_stream}}", put=records.put_super_stream),
    Resource(f"/api/stream/{_HOST}/{{stream}}/tracking", records.get_tracking),
)
