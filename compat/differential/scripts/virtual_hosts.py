"""Virtual hosts: entering them, listing them, deleting them; limits."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Step,
    Wait,
    add_user,
    administer,
    allow,
    ask,
    drop,
    opened,
    pause,
    reached,
    script,
    timed,
    until_end,
)

TO_THE_END = Wait(fin=True)
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
HOST = (
    administer("add_vhost", name="~v"),
    allow("guest", **EVERYTHING, virtual_host="~v"),
)
USER = (add_user("~u"), allow("~u", **EVERYTHING))


def refused(letter: str, virtual_host: str, *, user: str = "guest") -> tuple[Step, ...]:
    """Return the steps of a connection that is refused when it opens a virtual host."""
    return (
        reached(letter, Reached.TUNED, user=user),
        timed(letter, f.open_host(virtual_host), wait=TO_THE_END, label="open"),
    )


ENTERING = (
    script("a virtual host that is not there", *refused("A", "~nowhere")),
    script("a virtual host without a name", *refused("A", "")),
    script(
        "a virtual host in which the user has no permissions",
        *HOST,
        *USER,
        *refused("A", "~v", user="~u"),
        allow("~u", virtual_host="~v"),
        opened("B", user="~u", virtual_host="~v"),
        ask("B", f.metadata("~s")),
    ),
    script(
        "a user without permissions anywhere",
        add_user("~u"),
        *refused("A", "/", user="~u"),
    ),
    script(
        "two virtual hosts have streams of the same name",
        *HOST,
        opened("A"),
        opened("B", virtual_host="~v"),
        ask("A", f.create("~s")),
        ask("B", f.metadata("~s")),
        ask("B", f.stream_stats("~s")),
        ask("B", f.create("~s", {"max-age": "1h"})),
        ask("A", f.declare(1, "~s", "r")),
        ask("A", f.messages(1, 1, b"a"), wait=Wait(confirmed=1)),
        ask("B", f.stream_stats("~s")),
        ask("B", f.query_sequence("r", "~s")),
        ask("A", f.store_offset("o", "~s", 1), f.query_offset("o", "~s"), wait=Wait(frames=1)),
        ask("B", f.query_offset("o", "~s")),
        ask("B", f.delete("~s")),
        ask("A", f.metadata("~s")),
    ),
    script(
        "rights count in their own virtual host",
        *HOST,
        opened("G"),
        opened("H", virtual_host="~v"),
        ask("G", f.create("~s")),
        ask("H", f.create("~s")),
        add_user("~u"),
        allow("~u", read=".*"),
        allow("~u", write=".*", virtual_host="~v"),
        opened("A", user="~u"),
        opened("B", user="~u", virtual_host="~v"),
        ask("A", f.declare(1, "~s")),
        ask("B", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        ask("B", f.subscribe(1, "~s")),
    ),
)

DELETING = (
    script(
        "a virtual host is deleted under a publisher and a subscriber",
        *HOST,
        opened("A", virtual_host="~v"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        administer("delete_vhost", name="~v"),
        until_end("A", 5.0, is_timed=False),
        *refused("B", "~v"),
    ),
    script(
        "a virtual host is deleted under who does nothing",
        *HOST,
        opened("A", virtual_host="~v"),
        administer("delete_vhost", name="~v"),
        until_end("A", 5.0, is_timed=False),
    ),
    script(
        "a virtual host is deleted and created again",
        *HOST,
        opened("A", virtual_host="~v"),
        ask("A", f.create("~s")),
        drop("A"),
        administer("delete_vhost", name="~v"),
        *HOST,
        opened("B", virtual_host="~v"),
        ask("B", f.metadata("~s")),
        ask("B", f.create("~s")),
    ),
    script(
        "permissions go with their virtual host",
        *HOST,
        *USER,
        allow("~u", **EVERYTHING, virtual_host="~v"),
        administer("delete_vhost", name="~v"),
        *HOST,
        *refused("A", "~v", user="~u"),
    ),
)

LIMITS = (
    script(
        "a limit of connections of a user",
        *USER,
        administer("set_user_limits", name="~u", limits={"max-connections": 1}),
        opened("A", user="~u"),
        *refused("B", "/", user="~u"),
        drop("A"),
        pause(0.5),
        opened("C", user="~u"),
    ),
    script(
        "a user who may have no connection at all",
        *USER,
        administer("set_user_limits", name="~u", limits={"max-connections": 0}),
        *refused("A", "/", user="~u"),
    ),
    script(
        "a limit of a user that is none",
        *USER,
        administer("set_user_limits", name="~u", limits={"max-connections": -1}),
        opened("A", user="~u"),
        ask("A", f.metadata()),
    ),
    script(
        "a limit of connections of a virtual host",
        *HOST,
        administer("set_vhost_limits", name="~v", limits={"max-connections": 1}),
        opened("A", virtual_host="~v"),
        *refused("B", "~v"),
        administer("set_vhost_limits", name="~v", limits={"max-connections": 2}),
        opened("C", virtual_host="~v"),
        ask("C", f.metadata()),
    ),
    script(
        "a limit of streams of a virtual host",
        *HOST,
        administer("set_vhost_limits", name="~v", limits={"max-queues": 2}),
        opened("A", virtual_host="~v"),
        ask("A", f.create("~a")),
        ask("A", f.create("~b")),
        ask("A", f.create("~c"), label="above the limit"),
        ask("A", f.create("~b"), label="there already"),
        ask("A", f.create("~b", {"max-age": "1h"}), label="there with other arguments"),
        ask("A", f.create_super("~t", ["~t-0"], ["0"]), label="super stream"),
        ask("A", f.delete("~a")),
        ask("A", f.create_super("~t", ["~t-0", "~t-1"], ["0", "1"]), label="half of it"),
        ask("A", f.create("~c")),
    ),
)

SCRIPTS: tuple[Script, ...] = (*ENTERING, *DELETING, *LIMITS)
