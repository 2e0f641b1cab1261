"""Users, virtual hosts, permissions and policies."""

from __future__ import annotations

import json
import os
import sys

from compat.suites.shim.asking import (
    NO_SUCH_THING,
    NO_SUCH_USER,
    REFUSED,
    Failure,
    ask,
    ask_unless_gone,
)
from compat.suites.shim.printing import columns_of, formatted
from compat.suites.shim.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SALT_BYTES = 4
APPLY_TO = ("all", "queues", "streams", "classic_queues", "quorum_queues", "exchanges")


def add_user(words: Words) -> str:
    """Create a user with a password."""
    words.demand_count(1, 2)
    ask("add_user", name=words.plain[0], **_password(words))
    return ""


def change_password(words: Words) -> str:
    """Return a user another password."""
    words.demand_count(1, 2)
    ask("change_password", NO_SUCH_USER, name=words.plain[0], **_password(words))
    return ""


def _password(words: Words) -> dict[str, str]:
    """Return RabbitMQ's own hash of a password, which is an argument or read; none of an empty."""
    import base64  # noqa: PLC0415  # not needed by the commands that are called often
    import hashlib  # noqa: PLC0415

    if len(words.plain) > 1:
        password = words.plain[1]
    elif not (line := sys.stdin.readline()):
        raise Failure("password is not provided via argument or stdin", NO_SUCH_THING)
    else:
        password = line.rstrip("\r\n")
    if not password:
        return {"password_hash": ""}
    salt = os.urandom(SALT_BYTES)
    digest = hashlib.sha256(salt + password.encode(errors="surrogateescape")).digest()
    return {
        "password_hash": base64.b64encode(salt + digest).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
    }


def clear_password(words: Words) -> str:
    """Let a user log in without a password only, as by a certificate."""
    words.demand_count(1)
    ask("change_password", REFUSED, name=words.plain[0], password_hash="")
    return ""


def delete_user(words: Words) -> str:
    """Delete a user; fine if there is none."""
    words.demand_count(1)
    ask_unless_gone("delete_user", name=words.plain[0])
    return ""


def list_users(words: Words) -> str:
    """List the users and their tags."""
    words.demand_count(0)
    rows = [{"user": each["name"], "tags": each["tags"]} for each in ask("list_users")]
    return formatted(words, ("user", "tags"), rows)


def set_user_tags(words: Words) -> str:
    """Replace a user's tags."""
    words.demand_count(1, sys.maxsize)
    name, *tags = words.plain
    ask("set_user_tags", NO_SUCH_USER, name=name, tags=tags)
    return ""


def set_permissions(words: Words) -> str:
    """Say what a user may do in a virtual host."""
    words.demand_count(4)
    user, configure, write, read = words.plain
    try:
        ask(
            "set_permissions",
            REFUSED,
            user=user,
            virtual_host=words.host,
            configure=configure,
            write=write,
            read=read,
        )
    except Failure as failure:
        if failure.kind == "not_found":
            failure.code = NO_SUCH_USER
        raise
    return ""


def clear_permissions(words: Words) -> str:
    """Take a user everything in a virtual host; fine if it had nothing."""
    words.demand_count(1)
    ask_unless_gone("clear_permissions", user=words.plain[0], virtual_host=words.host)
    return ""


def add_vhost(words: Words) -> str:
    """Create a virtual host; fine if it is there."""
    words.demand_count(1)
    try:
        ask("add_vhost", name=words.plain[0])
    except Failure as failure:
        if failure.kind != "conflict":
            raise
    return ""


def delete_vhost(words: Words) -> str:
    """Delete a virtual host with all its streams."""
    words.demand_count(1)
    ask("delete_vhost", NO_SUCH_THING, name=words.plain[0])
    return ""


def list_vhosts(words: Words) -> str:
    """List the virtual hosts."""
    columns = columns_of(words, ("name", "description", "tags", "default_queue_type"), ("name",))
    return formatted(words, columns, ask("list_vhosts"))


def set_policy(words: Words) -> str:
    """Say what holds for streams by their names."""
    words.demand_count(3)
    name, pattern, definition = words.plain
    apply_to = words.options.get("apply-to", "all")
    if apply_to not in APPLY_TO:
        raise Failure(f"apply-to {apply_to!r} is none of {', '.join(APPLY_TO)}", REFUSED)
    ask(
        "set_policy",
        REFUSED,
        virtual_host=words.host,
        name=name,
        pattern=pattern,
        definition=_definition(definition),
        apply_to=apply_to,
        priority=words.number("priority", 0),
    )
    return ""


def _definition(text: str) -> dict[str, Any]:
    try:
        definition = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Failure(f"could not parse JSON document: {error}", REFUSED) from None
    if not isinstance(definition, dict):
        raise Failure(f"this is no JSON object: {text}", REFUSED)
    return definition


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def clear_policy(words: Words) -> str:
    """Delete a policy."""
    words.demand_count(1)
    ask("clear_policy", REFUSED, virtual_host=words.host, name=words.plain[0])
    return ""
