"""Every path of the API, with what each method does there and the tag that it takes."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from gateway.management.administration import Role
from gateway.management.http.answers import empty_answer
from gateway.management.http.bodies import LARGE_BYTES_MAX, MESSAGE_BYTES_MAX, SMALL_BYTES_MAX
from gateway.management.http.call import Call, Handler
from gateway.management.http.listing import object_answer
from gateway.management.http.views import (
    certificates,
    connections,
    definitions,
    exchanges,
    health,
    kinds,
    limits,
    publishing,
    scopes,
    server,
    streams,
    users,
    virtual_hosts,
)
from gateway.management.kinds.virtual_hosts import InHost
from gateway.management.requests.kinds import REQUESTS, KindRequests


class Endpoint(NamedTuple):
    """One method of a path.

    Attributes:
        handler: Does what is asked.
        role: The tag that it takes; a handler may demand more.
        body_bytes_max: How large a body may be.
        reads_body: The handler parses the body, which need not be an object then.
    """

    handler: Handler
    role: Role = Role.MANAGEMENT
    body_bytes_max: int = SMALL_BYTES_MAX
    reads_body: bool = False

    async def __call__(self, call: Call) -> Response:
        """Do what is asked. Raises NotAllowed, and what the handler raises."""
        call.actor.require(self.role)
        answer = await self.handler(call)
        if answer is None:
            return empty_answer(HTTPStatus.NO_CONTENT)
        return answer if isinstance(answer, Response) else object_answer(call, answer)


class Resource(NamedTuple):
    """A path and its methods.

    Attributes:
        path: With names in braces; each stands for one segment.
        handlers: What each method does.
    """

    path: str
    handlers: Mapping[str, Endpoint]


_A: Final = Role.ADMINISTRATOR
_M: Final = Role.MONITORING
_P: Final = Role.POLICYMAKER

_ENDPOINTS: Final = {
    "GET /overview": Endpoint(server.overview),
    "GET /whoami": Endpoint(server.whoami),
    "GET /version": Endpoint(server.version),
    "GET /cluster-name": Endpoint(server.cluster_name),
    "GET /nodes": Endpoint(server.list_nodes, _M),
    "GET /nodes/{node}": Endpoint(server.get_node, _M),
    "GET /nodes/{node}/memory": Endpoint(server.get_memory, _M),
    # The server's features are all there, and none is about to go; the page has no extensions.
    "GET /(feature-flags|deprecated-features(|/used)|extensions)": Endpoint(server.nothing),
    "GET /auth/hash_password/{password}": Endpoint(users.hash_password, _A),
    "GET /auth/attempts/{node}": Endpoint(partial(server.list_attempts, "protocol"), _M),
    "GET /auth/attempts/{node}/source": Endpoint(partial(server.list_attempts, "address"), _M),
    "DELETE /auth/attempts/{node}(|/source)": Endpoint(server.reset_attempts, _M),
    "GET /health/checks/(|local-)alarms": Endpoint(health.alarms),
    "GET /health/checks/(is-in-service|ready-to-serve-clients)": Endpoint(health.service),
    "GET /health/checks/node-is-quorum-critical": Endpoint(health.quorum),
    "GET /health/checks/below-node-connection-limit": Endpoint(health.connections),
    "GET /health/checks/certificate-expiration/{within}/{unit}": Endpoint(certificates.check),
    "GET /health/checks/port-listener/{port}": Endpoint(health.port),
    "GET /health/checks/protocol-listener/{protocol}": Endpoint(health.protocol),
    "GET /health/checks/reached-target-cluster-size": Endpoint(health.fine),
    # Virtual hosts are open and the tables are read before anything is answered.
    "GET /health/checks/virtual-hosts": Endpoint(health.fine),
    "GET /health/checks/metadata-store/initialized(|/with-data)": Endpoint(health.fine),
    # There are no quorum queues.
    "GET /health/checks/quorum-queues-without-elected-leaders"
    "/(all-vhosts|vhost/{virtual_host})(|/pattern/{pattern})": Endpoint(health.fine),
    "GET /healthchecks/node(|/{node})": Endpoint(health.node),
    "GET /aliveness-test/{virtual_host}": Endpoint(health.aliveness),
    "GET /definitions(|/{virtual_host})": Endpoint(definitions.get, _A),
    "POST /definitions(|/{virtual_host})": Endpoint(
        definitions.post, _A, LARGE_BYTES_MAX, reads_body=True
    ),
    "GET /users": Endpoint(users.list_users, _A),
    "POST /users/bulk-delete": Endpoint(users.delete_users, _A),
    "GET /users/without-permissions": Endpoint(users.list_users_without_permissions, _A),
    "GET /users/{user}": Endpoint(users.get_user, _A),
    "PUT /users/{user}": Endpoint(users.put_user, _A),
    "DELETE /users/{user}": Endpoint(users.delete_user),
    "GET /(|users/{user}/|vhosts/{virtual_host}/)permissions": Endpoint(users.list_permissions, _A),
    "GET /permissions/{virtual_host}/{user}": Endpoint(users.get_permission, _A),
    "PUT /permissions/{virtual_host}/{user}": Endpoint(users.put_permission, _A),
    "DELETE /permissions/{virtual_host}/{user}": Endpoint(users.delete_permission),
    "GET /(|users/{user}/|vhosts/{virtual_host}/)topic-permissions": Endpoint(
        users.list_topic_permissions, _A
    ),
    "GET /vhost-limits(|/{virtual_host})": Endpoint(limits.list_host_limits),
    "PUT /vhost-limits/{virtual_host}/{limit}": Endpoint(limits.put_host_limit, _A),
    "DELETE /vhost-limits/{virtual_host}/{limit}": Endpoint(limits.delete_host_limit, _A),
    "GET /user-limits(|/{user})": Endpoint(limits.list_user_limits),
    "PUT /user-limits/{user}/{limit}": Endpoint(limits.put_user_limit, _A),
    "DELETE /user-limits/{user}/{limit}": Endpoint(limits.delete_user_limit, _A),
    "GET /global-parameters": Endpoint(server.nothing, _P),
    "GET /parameters(|/{component}(|/{virtual_host}))": Endpoint(limits.list_parameters, _P),
    "GET /parameters/{component}/{virtual_host}/{name}": Endpoint(limits.get_parameter, _P),
    "PUT /parameters/{component}/{virtual_host}/{name}": Endpoint(limits.put_parameter, _A),
    "DELETE /parameters/{component}/{virtual_host}/{name}": Endpoint(limits.delete_parameter, _A),
    "GET /vhosts": Endpoint(virtual_hosts.list_all),
    "GET /vhosts/{virtual_host}": Endpoint(virtual_hosts.get),
    "PUT /vhosts/{virtual_host}": Endpoint(virtual_hosts.put, _A),
    "DELETE /vhosts/{virtual_host}": Endpoint(virtual_hosts.delete),
    "GET /connections": Endpoint(connections.list_connections),
    "GET /connections/{connection}": Endpoint(connections.get_connection),
    "DELETE /connections/{connection}": Endpoint(connections.close_connection),
    "GET /connections/username/{user}": Endpoint(connections.list_connections),
    "DELETE /connections/username/{user}": Endpoint(connections.close_connections_of_user),
    "GET /vhosts/{virtual_host}/connections": Endpoint(connections.list_connections),
    "GET /(|connections/{connection}/|vhosts/{virtual_host}/)channels": Endpoint(
        connections.list_channels
    ),
    # The word comes before a virtual host of this name, as in RabbitMQ.
    "GET /queues(|/detailed|/{virtual_host})": Endpoint(streams.list_queues),
    "GET /queues/{virtual_host}/{stream}": Endpoint(streams.get_queue),
    "PUT /queues/{virtual_host}/{stream}": Endpoint(streams.put_queue),
    "DELETE /queues/{virtual_host}/{stream}": Endpoint(streams.delete_queue),
    "POST /queues/{virtual_host}/{stream}/get": Endpoint(streams.get_messages),
    "DELETE /queues/{virtual_host}/{stream}/contents": Endpoint(streams.purge),
    "GET /queues/{virtual_host}/{stream}/bindings": Endpoint(exchanges.list_bindings),
    "GET /exchanges(|/{virtual_host})": Endpoint(exchanges.list_exchanges),
    "GET /exchanges/{virtual_host}/{exchange}": Endpoint(exchanges.get_exchange),
    "PUT /exchanges/{virtual_host}/{exchange}": Endpoint(exchanges.put_exchange),
    "DELETE /exchanges/{virtual_host}/{exchange}": Endpoint(exchanges.delete_exchange),
    "GET /exchanges/{virtual_host}/{exchange}/bindings/source": Endpoint(exchanges.list_bindings),
    "GET /exchanges/{virtual_host}/{exchange}/bindings/destination": Endpoint(
        exchanges.no_bindings
    ),
    "POST /exchanges/{virtual_host}/{exchange}/publish": Endpoint(
        publishing.publish, body_bytes_max=MESSAGE_BYTES_MAX
    ),
    "GET /bindings(|/{virtual_host})": Endpoint(exchanges.list_bindings),
    "GET /bindings/{virtual_host}/e/{exchange}/q/{stream}": Endpoint(exchanges.list_bindings),
    "POST /bindings/{virtual_host}/e/{exchange}/q/{stream}": Endpoint(exchanges.post_binding),
    "GET /bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}": Endpoint(exchanges.get_binding),
    "DELETE /bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}": Endpoint(
        exchanges.delete_binding
    ),
    "GET /consumers(|/{virtual_host})": Endpoint(connections.list_queue_consumers),
    "GET /stream/connections(|/{virtual_host})": Endpoint(connections.list_connections),
    "GET /stream/connections/{virtual_host}/{connection}": Endpoint(connections.get_connection),
    "DELETE /stream/connections/{virtual_host}/{connection}": Endpoint(
        connections.close_connection
    ),
    "GET /stream/(connections/{virtual_host}/{connection}/|)publishers": Endpoint(
        connections.list_publishers
    ),
    "GET /stream/publishers/{virtual_host}(|/{stream})": Endpoint(connections.list_publishers),
    "GET /stream/(connections/{virtual_host}/{connection}/|)consumers": Endpoint(
        connections.list_consumers
    ),
    "GET /stream/consumers/{virtual_host}": Endpoint(connections.list_consumers),
    "PUT /stream/super-streams/{virtual_host}/{super_stream}": Endpoint(streams.put_super_stream),
    "GET /stream/{virtual_host}/{stream}/tracking": Endpoint(streams.get_tracking),
    "GET /x/pravega/scopes": Endpoint(scopes.list_scopes),
    "GET /x/pravega/scopes/{scope}/streams": Endpoint(scopes.list_streams),
    "GET /x/pravega/scopes/{scope}/reader-groups": Endpoint(scopes.list_reader_groups),
    "GET /x/pravega/scopes/{scope}/tables": Endpoint(scopes.list_tables),
}
"""Methods and paths, without `/api`; one of the parts in parentheses is there, or an empty one."""


def endpoints_of(kind: InHost[Any], requests: KindRequests) -> dict[str, Endpoint]:
    """Return the methods and paths of a kind whose objects are listed, set and cleared."""
    views = kinds.KindViews(kind, requests)
    one = f"/{kind.path}/{{virtual_host}}/{{policy}}"
    return {
        f"GET /{kind.path}(|/{{virtual_host}})": Endpoint(views.all),
        f"GET {one}": Endpoint(views.get, Role.MANAGEMENT if kind.is_delegated else _A),
        f"PUT {one}": Endpoint(views.put, requests.put.role),
        f"DELETE {one}": Endpoint(views.delete, requests.remove.role),
    }


_CHOICE: Final = re.compile(r"\(([^()]*)\)")


def _each(pattern: str) -> Iterator[str]:
    choice = _CHOICE.search(pattern)
    if choice is None:
        yield pattern
        return
    for part in choice[1].split("|"):
        yield from _each(pattern[: choice.start()] + part + pattern[choice.end() :])


def _resources() -> Iterator[Resource]:
    paths: dict[str, dict[str, Endpoint]] = {}
    of_kinds = (endpoints_of(*each).items() for each in REQUESTS.items())
    for pattern, endpoint in chain(_ENDPOINTS.items(), *of_kinds):
        for asked in _each(pattern):
            method, path = asked.split(" ")
            handlers = paths.setdefault(f"/api{path}", {})
            if method == "GET":
                handlers["HEAD"] = endpoint
            handlers[method] = endpoint
    return (Resource(path, handlers) for path, handlers in paths.items())


RESOURCES: Final = tuple(_resources())
