"""`hutch ctl` commands on users, permissions, virtual hosts and connections."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Ask,
    Asked,
    Command,
    WrongUse,
    argument,
    arguments_of,
    key_list,
    listed,
    named,
    number_pairs,
)
from gateway.management.ctl.password import read_hash
from gateway.management.ctl.rows import LAYOUT, LAYOUT_OPTIONS, NODE, Row, columns, tabbed
from gateway.management.kinds import PERMISSIONS

_HASHED: Final = (
    argument(
        "--password-hash",
        (
            "how the password is kept: argon2id (default) is slow to guess; sha256 is RabbitMQ's"
            " own, for users that are to be exported to one"
        ),
        choices=("argon2id", "sha256", "sha512", "md5"),
        default="argon2id",
    ),
    argument("--no-password", "the user cannot log in with a password"),
)
_HOW_TYPED: Final = (
    "Without PASSWORD it is asked for, or is the first line of standard input. As an argument, as\n"
    "rabbitmqctl takes it, everybody on the machine can see it while the command runs."
)
_PASSWORD: Final = argument("password PASSWORD", "better left out: see above", nargs="?")
_USER: Final = named("user")
_OF_USER: Final = named("user", "user")
_ONE_USER: Final = argument("--user USER", "only of this user")
_VHOST: Final = argument("name VHOST", "name of the virtual host")
_TAGS: Final = "administrator, monitoring, policymaker, management"
_LIMITS: Final = argument(
    "limits LIMIT=N", "none removes all limits; below 0 is no limit", nargs="*", read=number_pairs
)
_COUNTS: Final = (
    *("auth_attempts", "auth_attempts_succeeded"),
    *("auth_attempts_failed", "auth_attempts_unread"),
)


def _outdated(answer: Mapping[str, Any]) -> str:
    """Say how many publishers and consumers have more rights than their user has now."""
    publishers = answer.get("outdated_publishers", 0)
    consumers = answer.get("outdated_consumers", 0)
    if not publishers and not consumers:
        return ""
    found = f"{publishers} publishers and {consumers} consumers"
    if answer.get("closed"):
        return f"closed {found} that the user could not begin any more\n"
    return f"{found} still act under the old permissions; --close closes them\n"


def _with_hash(asked: Asked) -> Asked:
    """Put the hash of a password, or none, in the place of how it is to be got."""
    algorithm, password = asked.pop("password_hash"), asked.pop("password", None)
    if not asked.pop("no_password"):
        return {**asked, **read_hash(algorithm, password)}
    if password is not None:
        raise WrongUse("say either a password or --no-password")
    return {**asked, "password_hash": ""}


def _connections(rows: Sequence[Row]) -> list[Row]:
    """Return connections by the columns of RabbitMQ's tools."""
    return [
        {
            "node": NODE,
            "conn_name": row["name"],
            "pid": f"<{NODE}.1.{row['number']}.0>",
            "user": row["user"],
            "vhost": row["virtual_host"],
            "client_properties": row["client_properties"],
        }
        for row in rows
    ]


_SHORT: Final = listed("number", "peer", "user", "virtual_host", "connection_name", "product")


def _named(connection: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add what a client says of its name and its library to what is known of its connection."""
    said = connection["client_properties"]
    product = " ".join(said[name] for name in ("product", "version") if name in said)
    return {**connection, "connection_name": said.get("connection_name"), "product": product}


def _without_permissions(server: Ask, asked: Asked) -> None:
    """Clear permissions if there are any; a user without any is as wanted."""
    if server("list_permissions", asked):
        server("clear_permissions", asked)


COMMANDS: Final = (
    Command("list_users", "who may log in", shown=listed("name", "tags", "password", "limits")),
    Command(
        "add_user",
        "create a user, who may nothing yet",
        (_USER, _PASSWORD, argument("--tags A,B", _TAGS, default="", read=key_list), *_HASHED),
        uses=("app", "app --password-hash sha256 < password-file"),
        more=_HOW_TYPED + "\nWhat the user may do is said by set_permissions.",
        asked=_with_hash,
    ),
    Command(
        "change_password",
        "give a user another password",
        (_USER, _PASSWORD, *_HASHED),
        uses=("app",),
        more=_HOW_TYPED,
        asked=_with_hash,
    ),
    Command(
        "clear_password",
        "let a user log in without a password only, as by a certificate",
        (_USER,),
        uses=("app",),
        request="change_password",
        asked=lambda asked: {**asked, "password_hash": ""},
    ),
    Command(
        "set_user_tags",
        "replace the tags of a user",
        (_USER, argument("tags TAG", f"{_TAGS}; none takes all away", nargs="*")),
        uses=("app monitoring",),
    ),
    Command(
        "set_user_limits",
        "replace the limits of a user",
        (_USER, _LIMITS),
        uses=("app max-connections=100",),
        more="Limits: max-connections; max-channels is kept for RabbitMQ and means nothing here.",
    ),
    Command("delete_user", "delete a user; its connections end", (_USER,), uses=("app",)),
    Command(
        "list_permissions", "who may do what", (ANY_HOST, _ONE_USER), listed(*PERMISSIONS.names())
    ),
    Command(
        "set_permissions",
        "say what a user may do in a virtual host",
        (
            *arguments_of(
                PERMISSIONS,
                HOST,
                _OF_USER,
                argument("configure CONFIGURE", "what it may create and delete"),
                argument("write WRITE", "what it may publish to"),
                argument("read READ", "what it may read"),
            ),
            argument(
                "--close", "close publishers and consumers that the user could not begin any more"
            ),
        ),
        _outdated,
        ("app '.*' '.*' '.*'", "-p orders app '' '^orders-' '.*'"),
        "Each is a regular expression that is looked for in names: '.*' is everything, ''\n"
        "nothing, '^orders-' what begins so. A user without any may not enter the virtual host.\n"
        "Who publishes or consumes already goes on until its client renews its secret, or --close.",
    ),
    Command(
        "clear_permissions",
        "take a user everything in a virtual host",
        (HOST, _OF_USER),
        uses=("-p orders app",),
        more="Fine if it had nothing there.",
        conversation=_without_permissions,
    ),
    Command(
        "list_auth_attempts",
        "who has tried to log in, and how often",
        (argument("--by", "what is counted", choices=("address", "protocol"), default="address"),),
        listed("remote_address", "protocol", *_COUNTS),
        more="Since the start of the server, for the 4,096 addresses that tried last. An address\n"
        "of IPv6 is its network of 64 bits. Unread: of how many that failed the password was not\n"
        "compared, since too many were wrong (users.failed_logins_a_second_max) or waited.",
    ),
    Command("reset_auth_attempts", "count attempts to log in from 0 again"),
    Command(
        "list_vhosts",
        "the virtual hosts",
        shown=listed("name", "description", "tags", "limits", "streams", "connections"),
    ),
    Command(
        "add_vhost",
        "create a virtual host, which nobody may enter yet",
        (
            _VHOST,
            argument("--description TEXT", "for people", default=""),
            argument("--tags A,B", "for people", default="", read=key_list),
        ),
        uses=("orders --description 'orders and returns'",),
    ),
    Command(
        "set_vhost_limits",
        "replace the limits of a virtual host",
        (_VHOST, _LIMITS),
        uses=("orders max-connections=1000 max-queues=200",),
        more="Limits: max-connections, max-queues (streams).",
    ),
    Command(
        "delete_vhost", "delete a virtual host WITH ALL ITS STREAMS", (_VHOST,), uses=("orders",)
    ),
    Command(
        "list_connections",
        "who is connected",
        (ANY_HOST, _ONE_USER),
        lambda answer: _SHORT([_named(each) for each in answer]),
        more="With --json also all that a client says of itself.",
    ),
    Command(
        "list_stream_connections",
        "the same as RabbitMQ's tools list it",
        (
            HOST,
            *LAYOUT_OPTIONS,
            columns(
                *("node", "conn_name", "pid", "user", "vhost", "client_properties"),
                usual=("conn_name",),
            ),
        ),
        tabbed(),
        ("conn_name,pid,client_properties",),
        LAYOUT,
        "list_connections",
        answered=_connections,
    ),
    Command(
        "close_connections",
        "end a connection, or all of a user or a virtual host",
        (
            argument("peer PEER", "address, as list_connections has it", nargs="?"),
            argument("--number N", "number, as list_connections has it", type=int),
            ANY_HOST,
            argument("--user USER", "all of this user"),
            argument("--reason TEXT", "logged", default="closed by an administrator"),
        ),
        lambda answer: f"{answer['closed']} closed\n",
        ("--user app",),
        "Most clients connect again at once: take the user its permissions first.",
    ),
)
