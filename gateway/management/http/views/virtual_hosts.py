"""Virtual hosts."""

from typing import Final

from gateway.management.errors import WrongRequest
from gateway.management.fields import Arguments, key_list, usable_text
from gateway.management.http.call import Answer, ApiCall
from gateway.management.http.listing import listed
from gateway.management.http.views.figures import messages
from gateway.management.http.views.streams import count_messages
from gateway.management.kinds.virtual_hosts import Host
from gateway.management.requests import virtual_hosts as requests

_QUEUE_TYPES: Final = ("classic", "quorum", "stream")


def _view(call: ApiCall, name: str, count: int) -> dict[str, object]:
    entry = call.administration.virtual_hosts.entry(name)
    described = {
        "description": entry.description,
        "tags": list(entry.tags),
        "default_queue_type": entry.default_queue_type or "stream",
    }
    return {
        "name": name,
        **described,
        "metadata": described,
        "protected_from_deletion": False,
        "tracing": False,
        "cluster_state": {call.facts.node: "running"},
        **messages(count),
    }


async def list_all(call: ApiCall) -> Answer:
    """List the virtual hosts that the actor may see; all of them for monitoring."""
    counted = {host.name: await count_messages(call, host) for host in call.watched_hosts()}
    names = [host.name for host in call.watched_hosts() if host.name in counted]  # still
    return await listed(call, names, lambda name: _view(call, name, counted[name]))


async def get(call: ApiCall) -> Answer:
    """Show one virtual host."""
    count = await count_messages(call, call.host())
    return _view(call, call.host().name, count)


async def put(call: ApiCall) -> Answer:
    """Create a virtual host, in which its creator may do everything, or describe it anew."""
    tags = call.body.get("tags", "")
    tags = tags if isinstance(tags, list) else key_list(call.text("tags", ""))
    description = call.text("description", "")
    call.flag("tracing", default=False)  # judged, though nothing is traced here
    queue_type = call.body.get("default_queue_type")
    if queue_type == "undefined":  # which is left open
        queue_type = None
    if queue_type not in (None, *_QUEUE_TYPES):
        raise WrongRequest(f"{queue_type!r} is not a valid queue type"[:200])
    name = usable_text("name", call.path["virtual_host"])
    said = usable_text("description", description)
    host = Host(name, said, Arguments({"tags": tags}).texts("tags"), queue_type)
    return await call.put(requests.put_vhost, user=call.actor.name, host=host)


async def delete(call: ApiCall) -> None:
    """Delete a virtual host with all that is in it."""
    await call.ask(requests.delete_vhost, name=call.path["virtual_host"])
