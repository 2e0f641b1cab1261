"""`hutch ctl` commands on users, permissions and virtual hosts."""

from typing import Final

from gateway.commands.grammar import (
    ANY_HOST,
    HOST,
    Asked,
    Command,
    Options,
    argument,
    key_list,
    listed,
    number_pairs,
)
from gateway.commands.password import read_hash

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
    "The password is asked for, or is the first line of standard input; it is never an argument."
)
_USER: Final = argument("name", metavar="USER", help="name of the user")
_TAGS_OPTION: Final = argument(
    "--tags", metavar="A,B", default="", help="administrator, monitoring, policymaker, management"
)
_LIMITS: Final = argument(
    "limits", metavar="LIMIT=N", nargs="*", help="none removes all limits; below 0 is no limit"
)


def _hash(options: Options) -> Asked:
    return {"password_hash": ""} if options.no_password else read_hash(options.password_hash)


def _add_user(options: Options) -> Asked:
    return {"name": options.name, "tags": key_list(options.tags), **_hash(options)}


def _limits(options: Options) -> Asked:
    return {"name": options.name, "limits": number_pairs(options.limits)}


COMMANDS: Final = (
    Command(
        "list_users",
        "who may log in",
        shown=listed("name", "tags", "password", "limits"),
    ),
    Command(
        "add_user",
        "create a user, who may nothing yet",
        (_USER, _TAGS_OPTION, _HASH, _NO_PASSWORD),
        _add_user,
        examples=(
            "hutch ctl add_user app",
            "hutch ctl add_user app --password-hash sha256 < password-file",
        ),
        more=_HOW_TYPED + " What the user may do is said by set_permissions.",
    ),
    Command(
        "change_password",
        "give a user another password",
        (_USER, _HASH, _NO_PASSWORD),
        lambda options: {"name": options.name, **_hash(options)},
        examples=("hutch ctl change_password app",),
        more=_HOW_TYPED,
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
        ),
        lambda options: {
            "virtual_host": options.vhost,
            "user": options.user,
            "configure": options.configure,
            "write": options.write,
            "read": options.read,
        },
        examples=(
            "hutch ctl set_permissions app '.*' '.*' '.*'",
            "hutch ctl set_permissions -p orders app '' '^orders-' '.*'",
        ),
        more="Each is a regular expression that is looked for in names: '.*' is everything, ''\n"
        "nothing, '^orders-' what begins so. A user without any may not enter the virtual host.",
    ),
    Command(
        "clear_permissions",
        "take a user everything in a virtual host",
        (HOST, argument("user", metavar="USER", help="name of the user")),
        lambda options: {"virtual_host": options.vhost, "user": options.user},
        examples=("hutch ctl clear_permissions -p orders app",),
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
        "of IPv6 is its network of 64 bits. Unread: how many of those that failed were not looked\n"
        "at, since too many had failed (users.failed_logins_a_second_max).",
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
        listed("number", "peer", "user", "virtual_host", "client_properties"),
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
