"""Every path of the API, with what each method does there and the tag that it takes.

Paths of RabbitMQ's API that are not here have a reason, and what to do instead.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from gateway.management.administration import Role
from gateway.management.errors import NotFound
from gateway.management.http.answers import empty_answer
from gateway.management.http.bodies import LARGE_BYTES_MAX, MESSAGE_BYTES_MAX, SMALL_BYTES_MAX
from gateway.management.http.call import Answer, ApiCall, Handler
from gateway.management.http.listing import listed_whole, object_answer
from gateway.management.http.views import (
    connections,
    definitions,
    exchanges,
    health,
    limits,
    publishing,
    scopes,
    server,
    streams,
    users,
    virtual_hosts,
)
from gateway.management.kinds.virtual_hosts import HostedKind
from gateway.management.requests.request import REQUESTS, KindRequests
from gateway.management.scopes import Scopes


class ApiMethod(NamedTuple):
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

    async def __call__(self, call: ApiCall) -> Response:
        """Do what is asked. Raises NotAllowed, and what the handler raises."""
        call.actor.require(self.role)
        answer = await self.handler(call)
        if answer is None:
            return empty_answer(HTTPStatus.NO_CONTENT)
        return answer if isinstance(answer, Response) else object_answer(call, answer)


class ApiPath(NamedTuple):
    """A path and its methods.

    Attributes:
        path: With names in braces; each stands for one segment.
        handlers: What each method does.
    """

    path: str
    handlers: Mapping[str, ApiMethod]


_A: Final = Role.ADMINISTRATOR
_M: Final = Role.MONITORING
_P: Final = Role.POLICYMAKER

_ENDPOINTS: Final = {
    "GET /overview": ApiMethod(server.overview),
    "GET /whoami": ApiMethod(server.whoami),
    "GET /version": ApiMethod(server.version),
    "GET /cluster-name": ApiMethod(server.cluster_name),
    "GET /nodes": ApiMethod(server.list_nodes, _M),
    "GET /nodes/{node}": ApiMethod(server.get_node, _M),
    "GET /nodes/{node}/memory": ApiMethod(server.get_memory, _M),
    # The server's features are all there, and none is about to go; the page has no extensions.
    "GET /(feature-flags|deprecated-features(|/used)|extensions)": ApiMethod(server.nothing),
    "GET /auth/hash_password/{password}": ApiMethod(users.hash_password, _A),
    "GET /auth/attempts/{node}": ApiMethod(partial(server.list_attempts, "protocol"), _M),
    "GET /auth/attempts/{node}/source": ApiMethod(partial(server.list_attempts, "address"), _M),
    "DELETE /auth/attempts/{node}(|/source)": ApiMethod(server.reset_attempts, _M),
    "GET /health/checks/(|local-)alarms": ApiMethod(health.alarms),
    "GET /health/checks/(is-in-service|ready-to-serve-clients)": ApiMethod(health.service),
    "GET /health/checks/node-is-quorum-critical": ApiMethod(health.quorum),
    "GET /health/checks/below-node-connection-limit": ApiMethod(health.connections),
    "GET /health/checks/certificate-expiration/{within}/{unit}": ApiMethod(health.certificates),
    "GET /health/checks/port-listener/{port}": ApiMethod(health.port),
    "GET /health/checks/protocol-listener/{protocol}": ApiMethod(health.protocol),
    "GET /health/checks/reached-target-cluster-size": ApiMethod(health.fine),
    # Virtual hosts are open and the tables are read before anything is answered.
    "GET /health/checks/virtual-hosts": ApiMethod(health.fine),
    "GET /health/checks/metadata-store/initialized(|/with-data)": ApiMethod(health.fine),
    # There are no quorum queues.
    "GET /health/checks/quorum-queues-without-elected-leaders"
    "/(all-vhosts|vhost/{virtual_host})(|/pattern/{pattern})": ApiMethod(health.fine),
    "GET /healthchecks/node(|/{node})": ApiMethod(health.node),
    "GET /aliveness-test/{virtual_host}": ApiMethod(health.aliveness),
    "GET /definitions(|/{virtual_host})": ApiMethod(definitions.get, _A),
    "POST /definitions(|/{virtual_host})": ApiMethod(
        definitions.post, _A, LARGE_BYTES_MAX, reads_body=True
    ),
    "GET /users": ApiMethod(users.list_users, _A),
    "POST /users/bulk-delete": ApiMethod(users.delete_users, _A),
    "GET /users/without-permissions": ApiMethod(users.list_users_without_permissions, _A),
    "GET /users/{user}": ApiMethod(users.get_user, _A),
    "PUT /users/{user}": ApiMethod(users.put_user, _A),
    "DELETE /users/{user}": ApiMethod(users.delete_user),
    "GET /(|users/{user}/|vhosts/{virtual_host}/)permissions": ApiMethod(
        users.list_permissions, _A
    ),
    "GET /permissions/{virtual_host}/{user}": ApiMethod(users.get_permission, _A),
    "PUT /permissions/{virtual_host}/{user}": ApiMethod(users.put_permission, _A),
    "DELETE /permissions/{virtual_host}/{user}": ApiMethod(users.delete_permission),
    "GET /(|users/{user}/|vhosts/{virtual_host}/)topic-permissions": ApiMethod(
        users.list_topic_permissions, _A
    ),
    "GET /vhost-limits(|/{virtual_host})": ApiMethod(limits.list_host_limits),
    "PUT /vhost-limits/{virtual_host}/{limit}": ApiMethod(limits.put_host_limit, _A),
    "DELETE /vhost-limits/{virtual_host}/{limit}": ApiMethod(limits.delete_host_limit, _A),
    "GET /user-limits(|/{user})": ApiMethod(limits.list_user_limits),
    "PUT /user-limits/{user}/{limit}": ApiMethod(limits.put_user_limit, _A),
    "DELETE /user-limits/{user}/{limit}": ApiMethod(limits.delete_user_limit, _A),
    "GET /global-parameters": ApiMethod(server.nothing, _P),
    "GET /parameters(|/{component}(|/{virtual_host}))": ApiMethod(limits.list_parameters, _P),
    "GET /parameters/{component}/{virtual_host}/{name}": ApiMethod(limits.get_parameter, _P),
    "PUT /parameters/{component}/{virtual_host}/{name}": ApiMethod(limits.put_parameter, _A),
    "DELETE /parameters/{component}/{virtual_host}/{name}": ApiMethod(limits.delete_parameter, _A),
    "GET /vhosts": ApiMethod(virtual_hosts.list_all),
    "GET /vhosts/{virtual_host}": ApiMethod(virtual_hosts.get),
    "PUT /vhosts/{virtual_host}": ApiMethod(virtual_hosts.put, _A),
    "DELETE /vhosts/{virtual_host}": ApiMethod(virtual_hosts.delete),
    "GET /connections": ApiMethod(connections.list_connections),
    "GET /connections/{connection}": ApiMethod(connections.get_connection),
    "DELETE /connections/{connection}": ApiMethod(connections.close_connection),
    "GET /connections/username/{user}": ApiMethod(connections.list_connections),
    "DELETE /connections/username/{user}": ApiMethod(connections.close_connections_of_user),
    "GET /vhosts/{virtual_host}/connections": ApiMethod(connections.list_connections),
    "GET /(|connections/{connection}/|vhosts/{virtual_host}/)channels": ApiMethod(
        connections.list_channels
    ),
    # The word comes before a virtual host of this name, as in RabbitMQ.
    "GET /queues(|/detailed|/{virtual_host})": ApiMethod(streams.list_queues),
    "GET /queues/{virtual_host}/{stream}": ApiMethod(streams.get_queue),
    "PUT /queues/{virtual_host}/{stream}": ApiMethod(streams.put_queue),
    "DELETE /queues/{virtual_host}/{stream}": ApiMethod(streams.delete_queue),
    "POST /queues/{virtual_host}/{stream}/get": ApiMethod(streams.get_messages),
    "DELETE /queues/{virtual_host}/{stream}/contents": ApiMethod(streams.purge),
    "GET /queues/{virtual_host}/{stream}/bindings": ApiMethod(exchanges.list_bindings),
    "GET /exchanges(|/{virtual_host})": ApiMethod(exchanges.list_exchanges),
    "GET /exchanges/{virtual_host}/{exchange}": ApiMethod(exchanges.get_exchange),
    "PUT /exchanges/{virtual_host}/{exchange}": ApiMethod(exchanges.put_exchange),
    "DELETE /exchanges/{virtual_host}/{exchange}": ApiMethod(exchanges.delete_exchange),
    "GET /exchanges/{virtual_host}/{exchange}/bindings/source": ApiMethod(exchanges.list_bindings),
    "GET /exchanges/{virtual_host}/{exchange}/bindings/destination": ApiMethod(
        exchanges.no_bindings
    ),
    "POST /exchanges/{virtual_host}/{exchange}/publish": ApiMethod(
        publishing.publish, body_bytes_max=MESSAGE_BYTES_MAX
    ),
    "GET /bindings(|/{virtual_host})": ApiMethod(exchanges.list_bindings),
    "GET /bindings/{virtual_host}/e/{exchange}/q/{stream}": ApiMethod(exchanges.list_bindings),
    "POST /bindings/{virtual_host}/e/{exchange}/q/{stream}": ApiMethod(exchanges.post_binding),
    "GET /bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}": ApiMethod(exchanges.get_binding),
    "DELETE /bindings/{virtual_host}/e/{exchange}/q/{stream}/{key}": ApiMethod(
        exchanges.delete_binding
    ),
    "GET /consumers(|/{virtual_host})": ApiMethod(connections.list_queue_consumers),
    "GET /stream/connections(|/{virtual_host})": ApiMethod(connections.list_connections),
    "GET /stream/connections/{virtual_host}/{connection}": ApiMethod(connections.get_connection),
    "DELETE /stream/connections/{virtual_host}/{connection}": ApiMethod(
        connections.close_connection
    ),
    "GET /stream/(connections/{virtual_host}/{connection}/|)publishers": ApiMethod(
        connections.list_publishers
    ),
    "GET /stream/publishers/{virtual_host}(|/{stream})": ApiMethod(connections.list_publishers),
    "GET /stream/(connections/{virtual_host}/{connection}/|)consumers": ApiMethod(
        connections.list_consumers
    ),
    "GET /stream/consumers/{virtual_host}": ApiMethod(connections.list_consumers),
    "PUT /stream/super-streams/{virtual_host}/{super_stream}": ApiMethod(streams.put_super_stream),
    "GET /stream/{virtual_host}/{stream}/tracking": ApiMethod(streams.get_tracking),
    "GET /x/pravega/scopes": ApiMethod(scopes.list_scopes),
    "GET /x/pravega/scopes/{scope}/streams": ApiMethod(partial(scopes.list_within, Scopes.streams)),
    "GET /x/pravega/scopes/{scope}/reader-groups": ApiMethod(
        partial(scopes.list_within, Scopes.reader_groups)
    ),
    "GET /x/pravega/scopes/{scope}/tables": ApiMethod(partial(scopes.list_within, Scopes.tables)),
}
"""Methods and paths, without `/api`; one of the parts in parentheses is there, or an empty one."""


def endpoints_of(kind: HostedKind[Any], requests: KindRequests) -> dict[str, ApiMethod]:
    """Return the methods and paths of a kind whose objects are listed, set and cleared."""

    def shown(host: str, thing: object) -> dict[str, object]:
        return {"vhost": host, **kind.outer(thing)}

    async def list_all(call: ApiCall) -> Answer:
        found = [(host.name, thing) for host in call.hosts() for thing in kind.all_in(host)]
        return await listed_whole(call, found, lambda one: shown(*one))

    async def get(call: ApiCall) -> Answer:
        host = call.host().name
        thing = kind.find(call.administration, (host, call.path["policy"]))
        if thing is None:
            raise NotFound(f"there is no such {kind.word}")
        return shown(host, thing)

    async def put(call: ApiCall) -> Answer:
        host = call.host().name
        call.demand(*kind.demanded)
        thing = call.thing(kind, name=call.path["policy"])
        return await call.put(requests.put, virtual_host=host, thing=thing)

    async def delete(call: ApiCall) -> None:
        host = call.host().name
        await call.ask(requests.remove, virtual_host=host, name=call.path["policy"])

    one = f"/{kind.path}/{{virtual_host}}/{{policy}}"
    return {
        f"GET /{kind.path}(|/{{virtual_host}})": ApiMethod(list_all),
        f"GET {one}": ApiMethod(get, Role.MANAGEMENT if kind.is_delegated else _A),
        f"PUT {one}": ApiMethod(put, requests.put.role),
        f"DELETE {one}": ApiMethod(delete, requests.remove.role),
    }


_CHOICE: Final = re.compile(r"\(([^()]*)\)")


def _each(pattern: str) -> Iterator[str]:
    choice = _CHOICE.search(pattern)
    if choice is None:
        yield pattern
        return
    for part in choice[1].split("|"):
        yield from _each(pattern[: choice.start()] + part + pattern[choice.end() :])


def _resources() -> Iterator[ApiPath]:
    paths: dict[str, dict[str, ApiMethod]] = {}
    of_kinds = (endpoints_of(*each).items() for each in REQUESTS.items())
    for pattern, endpoint in chain(_ENDPOINTS.items(), *of_kinds):
        for asked in _each(pattern):
            method, path = asked.split(" ")
            handlers = paths.setdefault(f"/api{path}", {})
            if method == "GET":
                handlers["HEAD"] = endpoint
            handlers[method] = endpoint
    return (ApiPath(path, handlers) for path, handlers in paths.items())


RESOURCES: Final = tuple(_resources())

# Paths of RabbitMQ's API that are not here

_TO_LOG_IN: Final = "there is no web page to log in to: requests carry a user and a password"
_MEMORY: Final = "memory is not divided as Erlang's is: /api/nodes/NODE/memory has all of it"

_REASONS: Final[Mapping[str, str]] = {
    "/api/shovels": "there are no shovels: `hutch bridge` carries messages",
    "/api/federation-links": "there is no federation: `hutch pipeline copy` copies streams",
    "/api/queues/quorum/…": "there are no quorum queues: every queue is a stream on this node",
    "/api/queues/…/…/actions": "a stream has no replicas that could be synchronised",
    "/api/rebalance/queues": "there is nothing to rebalance: one node leads every stream",
    "/api/users/…/queues": "streams are not a user's: /api/queues lists all of them",
    "/api/channels/…": "there are no channels: /api/stream/publishers lists publishers",
    "/api/connections/…/sessions": "connections have no sessions: AMQP 1.0 is not spoken",
    "/api/bindings/…/e/…/e/…": "an exchange leads to streams, not to other exchanges",
    "/api/topic-permissions/…": "there are no topic permissions, only /api/permissions",
    "/api/global-parameters/…": "there are no global parameters",
    "/api/feature-flags/…/enable": "there are no feature flags: all that is here is enabled",
    "/api/vhosts/…/deletion/protection": "virtual hosts are not protected from their deletion",
    "/api/vhosts/…/start/…": "a virtual host runs as long as the server does",
    "/api/nodes/…/memory/…": _MEMORY,
    "/api/all-configuration": "this old name is not known: /api/definitions is the same",
    "/api/config/effective": "`hutch config` shows the settings in force",
    "/api/reset": "no statistics are kept that could be reset",
    "/api/login": _TO_LOG_IN,
    "/api/traces": "nothing is traced",
    "/api/trace-files": "nothing is traced",
    "/api/top": "there are no Erlang processes",
    "/metrics": "there are no metrics for Prometheus: /api/overview and /api/queues have numbers",
}
"""Reasons by paths, where `…` stands for one name, and more may follow."""


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace("…", "[^/]+") + "(/.*)?")


_PATTERNS: Final = [(_pattern(path), reason) for path, reason in _REASONS.items()]


def reason_of(path: str) -> str | None:
    """Return why a path is not here; None if RabbitMQ has none like it either."""
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(path)), None)
