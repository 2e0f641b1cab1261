"""`hutch ctl` commands on users, permissions and virtual hosts."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.management.ctl.grammar import (
    ANY_HOST,
    HOST,
    Ask,
    Asked,
    Command,
    Options,
    WrongUse,
    argument,
    key_list,
    listed,
    number_pairs,
)
from gateway.management.ctl.password import read_hash
from gateway.management.ctl.rows import (
    LAYOUT,
    NODE,
    Row,
    chosen,
    columns_argument,
    layout_arguments,
    picked,
    tabbed,
)

_HASH: Final = argument(
    "--password-hash",
    choices=("argon2id", "sha256", "sha512", "md5"),
    default="argon2id",
    help="how the password is kept: argon2id (default) is slow to guess; sha256 is RabbitMQ's own,"
    " for users that are to be exported to one",
)
_NO_PASSWORD: Final = argument(
    "--no-password", action="store_true", help="the user cannot log in with a password"
)
_HOW_TYPED: Final = (
    "Without PASSWORD it is asked for, or is the first line of standard input. As an argument, as\n"
    "rabbitmqctl takes it, everybody on the machine can see it while the command runs."
)
_PASSWORD: Final = argument(
    "password", metavar="PASSWORD", nargs="?", help="better left out: see above"
)
_USER: Final = argument("name", metavar="USER", help="name of the user")
_TAGS_OPTION: Final = argument(
    "--tags", metavar="A,B", default="", help="administrator, monitoring, policymaker, management"
)
_LIMITS: Final = argument(
    "limits", metavar="LIMIT=N", nargs="*", help="none removes all limits; below 0 is no limit"
)


_CLOSE: Final = "close publishers and consumers that the user could not begin any more"


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


def _hash(options: Options) -> Asked:
    if not options.no_password:
        return read_hash(options.password_hash, options.password)
    if options.password is not None:
        raise WrongUse("say either a password or --no-password")
    return {"password_hash": ""}


def _add_user(options: Options) -> Asked:
    return {"name": options.name, "tags": key_list(options.tags), **_hash(options)}


def _limits(options: Options) -> Asked:
    return {"name": options.name, "limits": number_pairs(options.limits)}


_CONNECTION: Final = ("node", "conn_name", "pid", "user", "vhost", "client_properties")


def _stream_connections(server: Ask, asked: Asked) -> list[Row]:
    connections = [
        {
            "node": NODE,
            "conn_name": each["name"],
            "pid": f"<{NODE}.1.{each['number']}.0>",
            "user": each["user"],
            "vhost": each["virtual_host"],
            "client_properties": each["client_properties"],
        }
        for each in server("list_connections", {"virtual_host": asked["virtual_host"]})
    ]
    return picked(connections, asked["columns"])


_SHORT: Final = listed("number", "peer", "user", "virtual_host", "connection_name", "product")


def _named(connection: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add what a client says of its name and its library to what is known of its connection."""
    said = connection["client_properties"]
    product = " ".join(said[name] for name in ("product", "version") if name in said)
    return {**connection, "connection_name": said.get("connection_name"), "product": product}


def _without_permissions(server: Ask, asked: Asked) -> None:
    """Clear permissions if there are any; who has none has none already."""
    if server("list_permissions", asked):
        server("clear_permissions", asked)


COMMANDS: Final = (
    Command(
        "list_users",
        "who may log in",
        shown=listed("name", "tags", "password", "limits"),
    ),
    Command(
        "add_user",
        "create a user, who may nothing yet",
        (_USER, _PASSWORD, _TAGS_OPTION, _HASH, _NO_PASSWORD),
        _add_user,
        examples=(
            "hutch ctl add_user app",
            "hutch ctl add_user app --password-hash sha256 < password-file",
        ),
        more=_HOW_TYPED + "\nWhat the user may do is said by set_permissions.",
    ),
    Command(
        "change_password",
        "give a user another password",
        (_USER, _PASSWORD, _HASH, _NO_PASSWORD),
        lambda options: {"name": options.name, **_hash(options)},
        examples=("hutch ctl change_password app",),
        more=_HOW_TYPED,
    ),
    Command(
        "clear_password",
        "let a user log in without a password only, as by a certificate",
        (_USER,),
        lambda options: {"name": options.name, "password_hash": ""},
        examples=("hutch ctl clear_password app",),
        request="change_password",
    ),
    Command(
        "set_user_tags",
        "replace the tags of a user",
        (
            _USER,
            argument(
                "tags",
                metavar="TAG",
                nargs="*",
                help="administrator, monitoring, policymaker, management; none takes all away",
            ),
        ),
        lambda options: {"name": options.name, "tags": options.tags},
        examples=("hutch ctl set_user_tags app monitoring",),
    ),
    Command(
        "set_user_limits",
        "replace the limits of a user",
        (_USER, _LIMITS),
        _limits,
        examples=("hutch ctl set_user_limits app max-connections=100",),
        more="Limits: max-connections; max-channels is kept for RabbitMQ and means nothing here.",
    ),
    Command(
        "delete_user",
        "delete a user; its connections end",
        (_USER,),
        lambda options: {"name": options.name},
        examples=("hutch ctl delete_user app",),
    ),
    Command(
        "list_permissions",
        "who may do what",
        (ANY_HOST, argument("--user", metavar="USER", help="only of this user")),
        lambda options: {"virtual_host": options.vhost, "user": options.user},
        listed("user", "virtual_host", "configure", "write", "read"),
    ),
    Command(
        "set_permissions",
        "say what a user may do in a virtual host",
        (
            HOST,
            argument("user", metavar="USER", help="name of the user"),
            argument("configure", metavar="CONFIGURE", help="what it may create and delete"),
            argument("write", metavar="WRITE", help="what it may publish to"),
            argument("read", metavar="READ", help="what it may read"),
            argument("--close", action="store_true", help=_CLOSE),
        ),
        lambda options: {
            "virtual_host": options.vhost,
            "user": options.user,
            "configure": options.configure,
            "write": options.write,
            "read": options.read,
            "close": options.close,
        },
        shown=_outdated,
        examples=(
            "hutch ctl set_permissions app '.*' '.*' '.*'",
            "hutch ctl set_permissions -p orders app '' '^orders-' '.*'",
        ),
        more="Each is a regular expression that is looked for in names: '.*' is everything, ''\n"
        "nothing, '^orders-' what begins so. A user without any may not enter the virtual host.\n"
        "Who publishes or consumes already goes on until its client renews its secret, or --close.",
    ),
    Command(
        "clear_permissions",
        "take a user everything in a virtual host",
        (HOST, argument("user", metavar="USER", help="name of the user")),
        lambda options: {"virtual_host": options.vhost, "user": options.user},
        examples=("hutch ctl clear_permissions -p orders app",),
        conversation=_without_permissions,
        more="Fine if it had nothing there.",
    ),
    Command(
        "list_auth_attempts",
        "who has tried to log in, and how often",
        (
            argument(
                "--by", choices=("address", "protocol"), default="address", help="what is counted"
            ),
        ),
        lambda options: {"by": options.by},
        listed(
            "remote_address",
            "protocol",
            "auth_attempts",
            "auth_attempts_succeeded",
            "auth_attempts_failed",
            "auth_attempts_unread",
        ),
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
            argument("name", metavar="VHOST", help="name of the virtual host"),
            argument("--description", metavar="TEXT", default="", help="for people"),
            argument("--tags", metavar="A,B", default="", help="for people"),
        ),
        lambda options: {
            "name": options.name,
            "description": options.description,
            "tags": key_list(options.tags),
        },
        examples=("hutch ctl add_vhost orders --description 'orders and returns'",),
    ),
    Command(
        "set_vhost_limits",
        "replace the limits of a virtual host",
        (argument("name", metavar="VHOST", help="name of the virtual host"), _LIMITS),
        _limits,
        examples=("hutch ctl set_vhost_limits orders max-connections=1000 max-queues=200",),
        more="Limits: max-connections, max-queues (streams).",
    ),
    Command(
        "delete_vhost",
        "delete a virtual host WITH ALL ITS STREAMS",
        (argument("name", metavar="VHOST", help="name of the virtual host"),),
        lambda options: {"name": options.name},
        examples=("hutch ctl delete_vhost orders",),
    ),
    Command(
        "list_connections",
        "who is connected",
        (ANY_HOST, argument("--user", metavar="USER", help="only of this user")),
        lambda options: {"virtual_host": options.vhost, "user": options.user},
        lambda answer: _SHORT([_named(each) for each in answer]),
        more="With --json also all that a client says of itself.",
    ),
    Command(
        "list_stream_connections",
        "the same as RabbitMQ's tools list it",
        (HOST, *layout_arguments(), columns_argument(_CONNECTION)),
        lambda options: {
            "virtual_host": options.vhost,
            "columns": chosen(options.columns, _CONNECTION, ("conn_name",)),
        },
        tabbed(),
        ("hutch ctl list_stream_connections conn_name,pid,client_properties",),
        more=LAYOUT,
        conversation=_stream_connections,
    ),
    Command(
        "close_connections",
        "end a connection, or all of a user or a virtual host",
        (
            argument("peer", metavar="PEER", nargs="?", help="address, as list_connections has it"),
            argument("--number", metavar="N", type=int, help="number, as list_connections has it"),
            ANY_HOST,
            argument("--user", metavar="USER", help="all of this user"),
            argument(
                "--reason", metavar="TEXT", default="closed by an administrator", help="logged"
            ),
        ),
        lambda options: {
            "peer": options.peer,
            "number": options.number,
            "user": options.user,
            "virtual_host": options.vhost,
            "reason": options.reason,
        },
        lambda answer: f"{answer['closed']} closed\n",
        examples=("hutch ctl close_connections --user app",),
        more="Most clients connect again at once: take the user its permissions first.",
    ),
)
