"""`hutch ctl` commands on users, permissions, virtual hosts and connections."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Ask,
    Asked,
    WrongUse,
    argument,
    arguments_of,
    command,
    listed,
    named,
    number_pairs,
)
from gateway.management.ctl.password import read_hash
from gateway.management.ctl.rows import NODE, Row, columns, tabular
from gateway.management.fields import key_list
from gateway.management.kinds.people import PERMISSIONS

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
_PASSWORD: Final = argument(
    "password PASSWORD",
    "better left out: every user of the machine can see it while the command runs",
    nargs="?",
)
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


_SHORT: Final = listed("number", "peer", "user", "virtual_host", "connection_name", "product")


def _named(connection: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add what a client says of its name and its library to what is known of its connection."""
    said = connection["client_properties"]
    product = " ".join(said[name] for name in ("product", "version") if name in said)
    return {**connection, "connection_name": said.get("connection_name"), "product": product}


@command(shown=listed("name", "tags", "password", "limits"))
def list_users() -> None:
    """List the users that may log in."""


@command(
    _USER,
    _PASSWORD,
    argument("--tags A,B", _TAGS, default="", read=key_list),
    *_HASHED,
    uses=("app", "app --password-hash sha256 < password-file"),
)
def add_user(ask: Ask, asked: Asked) -> None:
    """Create a user, which may do nothing yet.

    Without PASSWORD it is asked for, or is the first line of standard input. As an argument, as
    rabbitmqctl takes it, every user of the machine can see it while the command runs.
    set_permissions says what the user may do.
    """
    ask("add_user", _with_hash(asked))


@command(_USER, _PASSWORD, *_HASHED, uses=("app",))
def change_password(ask: Ask, asked: Asked) -> None:
    """Set another password of a user.

    Without PASSWORD it is asked for, or is the first line of standard input, as for add_user.
    """
    ask("change_password", _with_hash(asked))


@command(_USER, uses=("app",))
def clear_password(ask: Ask, asked: Asked) -> None:
    """Let a user log in without a password only, as by a certificate."""
    ask("change_password", {**asked, "password_hash": ""})


@command(
    _USER,
    argument("tags TAG", f"{_TAGS}; none takes all away", nargs="*"),
    uses=("app monitoring",),
)
def set_user_tags() -> None:
    """Replace the tags of a user."""


@command(_USER, _LIMITS, uses=("app max-connections=100",))
def set_user_limits() -> None:
    """Replace the limits of a user.

    Limits: max-connections; max-channels is kept for RabbitMQ and means nothing here.
    """


@command(_USER, uses=("app",))
def delete_user() -> None:
    """Delete a user; its connections end.

    What it has staged goes, and so do its sinks (list_sinks). Stages of a commit under way go when
    they are in their streams.
    """


@command(ANY_HOST, _ONE_USER, shown=listed(*PERMISSIONS.names()))
def list_permissions() -> None:
    """List what users may do in virtual hosts."""


@command(
    *arguments_of(
        PERMISSIONS,
        HOST,
        _OF_USER,
        argument("configure CONFIGURE", "what it may create and delete"),
        argument("write WRITE", "what it may publish to"),
        argument("read READ", "what it may read"),
    ),
    argument("--close", "close publishers and consumers that the user could not begin any more"),
    uses=("app '.*' '.*' '.*'", "-p orders app '' '^orders-' '.*'"),
    shown=_outdated,
)
def set_permissions() -> None:
    """Say what a user may do in a virtual host.

    Each is a regular expression that is looked for in names: '.*' is everything, '' nothing,
    '^orders-' what begins so. A user without any may not enter the virtual host.
    Publishers and consumers that are open go on until their client renews its secret, or --close.
    """


@command(HOST, _OF_USER, uses=("-p orders app",))
def clear_permissions(ask: Ask, asked: Asked) -> None:
    """Revoke all that a user may do in a virtual host.

    Fine if it had nothing there.
    """
    if ask("list_permissions", asked):
        ask("clear_permissions", asked)


@command(
    argument("--by", "what is counted", choices=("address", "protocol"), default="address"),
    shown=listed("remote_address", "protocol", *_COUNTS),
)
def list_auth_attempts() -> None:
    """List how often clients tried to log in.

    Since the start of the server, for the 4,096 addresses that tried last. An address of IPv6 is
    its network of 64 bits. Unread: of how many that failed the password was not compared, since too
    many were wrong (users.failed_logins_a_second_max) or waited.
    """


@command()
def reset_auth_attempts() -> None:
    """Count attempts to log in from 0 again."""


@command(shown=listed("name", "description", "tags", "limits", "streams", "connections"))
def list_vhosts() -> None:
    """List the virtual hosts."""


@command(
    _VHOST,
    argument("--description TEXT", "for people", default=""),
    argument("--tags A,B", "for people", default="", read=key_list),
    uses=("orders --description 'orders and returns'",),
)
def add_vhost() -> None:
    """Create a virtual host, which no user may enter yet."""


@command(_VHOST, _LIMITS, uses=("orders max-connections=1000 max-queues=200",))
def set_vhost_limits() -> None:
    """Replace the limits of a virtual host.

    Limits: max-connections, max-queues (streams).
    """


@command(_VHOST, uses=("orders",))
def delete_vhost() -> None:
    """Delete a virtual host WITH ALL ITS STREAMS."""


@command(ANY_HOST, _ONE_USER, shown=lambda answer: _SHORT([_named(each) for each in answer]))
def list_connections() -> None:
    """List the connections of clients.

    With --json also all that a client says of itself.
    """


@tabular(
    HOST,
    columns(
        *("node", "conn_name", "pid", "user", "vhost", "client_properties"), usual=("conn_name",)
    ),
    uses=("conn_name,pid,client_properties",),
)
def list_stream_connections(ask: Ask, asked: Asked) -> list[Row]:
    """List the connections of clients by the columns of RabbitMQ's tools."""
    return [
        {
            "node": NODE,
            "conn_name": row["name"],
            "pid": f"<{NODE}.1.{row['number']}.0>",
            "user": row["user"],
            "vhost": row["virtual_host"],
            "client_properties": row["client_properties"],
        }
        for row in ask("list_connections", asked)
    ]


@command(
    argument("peer PEER", "address, as list_connections has it", nargs="?"),
    argument("--number N", "number, as list_connections has it", type=int),
    ANY_HOST,
    argument("--user USER", "all of this user"),
    argument("--reason TEXT", "logged", default="closed by an administrator"),
    uses=("--user app",),
    shown=lambda answer: f"{answer['closed']} closed\n",
)
def close_connections() -> None:
    """End a connection, or all of a user or a virtual host.

    Most clients connect again at once: take the user its permissions first.
    """
