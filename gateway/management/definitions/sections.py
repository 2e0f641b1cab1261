"""Entries of RabbitMQ's definitions as objects of the broker; a function for each kind.

Each takes an entry and raises `Fault` for what makes no sense, `Skip` for what has no
counterpart here; what is taken in another form than written is noted with the entry.

Source: RabbitMQ, "Definition Export and Import"; rabbit_definitions.erl; exports of 3.6 to 4.3.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gateway.broker.access.errors import Unusable
from gateway.broker.access.model import (
    USER_LIMITS,
    VIRTUAL_HOST_LIMITS,
    Permission,
    Right,
    User,
    check_name,
)
from gateway.broker.access.passwords import Algorithm, PasswordHash, UnusableHash
from gateway.broker.patterns import Pattern, UnusablePattern, length_fault
from gateway.broker.rules.arguments import InvalidArgument, StreamArguments
from gateway.broker.rules.policies import APPLY_TO, Policy, check_operator_policy, check_policy
from gateway.broker.rules.policy_settings import DEFINED, check_values, not_of_streams
from gateway.broker.topology.exchange import ALTERNATE_EXCHANGE
from gateway.broker.topology.exchanges import Binding, Exchange
from gateway.management.definitions.entry import Entry, Fault, Needless, Skip
from gateway.management.definitions.errors import shown
from gateway.management.definitions.objects import NO_PASSWORD, Host, Key, Stream, binding_key
from gateway.management.fields import is_integer
from gateway.management.kinds import BINDINGS, EXCHANGES, POLICIES

OPERATOR_POLICIES: Final = "operator_policy"
"""The component of parameters that are operators' policies."""
RESERVED_PREFIX: Final = "amq."
EXCHANGE_TYPES: Final = ("direct", "fanout", "topic")
STREAM_ARGUMENTS: Final[Mapping[str, str]] = {
    "x-max-length-bytes": "max-length-bytes",
    "x-max-age": "max-age",
    "x-stream-max-segment-size-bytes": "stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes": "stream-filter-size-bytes",
    "x-initial-cluster-size": "initial-cluster-size",
    "x-queue-leader-locator": "queue-leader-locator",
    "x-stream-initial-offset": "stream-initial-offset",
}
"""A stream's arguments as a queue declares them, and as a Create carries them."""
POLICY_KEYS: Final = frozenset(DEFINED)
"""Keys of a policy that mean something to a stream."""
_POLICY_TEXTS: Final = frozenset({"max-age"})
_STREAM_TARGETS: Final = frozenset({"all", "queues", "streams"})
_TEXT_ARGUMENTS: Final = frozenset({"x-max-age", "x-queue-leader-locator"})
_LINE_ENDS: Final = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Context:
    """Facts that the meaning of an entry depends on.

    Attributes:
        virtual_host: Of the entries that name none, as in the export of one virtual host.
        queue_types: The default queue type of each virtual host of the file.
    """

    virtual_host: str | None
    queue_types: Mapping[str, str | None]

    def host_of(self, entry: Entry) -> str:
        """Return the virtual host that an entry belongs to."""
        if "vhost" not in entry and self.virtual_host is not None:
            return self.virtual_host
        return entry.name("vhost")

    def require_pattern(self, entry: Entry, field: str) -> str:
        """Return a regular expression that can be used here; Skip if it cannot."""
        pattern = entry.text(field)
        if fault := length_fault(pattern) or _pattern_fault(pattern):
            raise Skip(f"{field} {fault}")
        return pattern


@lru_cache(maxsize=4096)
def _pattern_fault(pattern: str) -> str:
    try:
        Pattern(pattern)
    except UnusablePattern as error:
        return str(error)
    return ""


def _named(name: str, what: str) -> str:
    try:
        check_name(name, what)
    except Unusable as error:
        raise Fault(str(error)) from None
    return name


# ------------------------------------------------------------------------ users and permissions


def host(entry: Entry, context: Context) -> tuple[Key, Host]:
    """Read a virtual host; newer exports keep what describes it under `metadata`."""
    name = entry.name() if "name" in entry or context.virtual_host is None else context.virtual_host
    _named(name, "virtual host")
    about = Entry(dict(entry.mapping("metadata")))
    if not any(field in about for field in ("description", "tags", "default_queue_type")):
        about = entry
    queue_type = about.text("default_queue_type", "")
    return ("", name), Host(
        name,
        about.text("description", ""),
        about.tags(),
        None if queue_type in ("", "undefined") else queue_type,
        entry.limits("limits", VIRTUAL_HOST_LIMITS),
    )


def user(entry: Entry, _context: Context) -> tuple[Key, User]:
    """Read a user with the hash of its password."""
    name = _named(entry.name(), "user")
    if "password" in entry:
        raise Fault(
            "password: never in clear; password_hash takes what `hutch hash-password` prints"
        )
    hashed = _password(entry)
    return ("", name), User(name, hashed, entry.tags(), entry.limits("limits", USER_LIMITS))


def _password(entry: Entry) -> PasswordHash | None:
    text = entry.text("password_hash", NO_PASSWORD)
    named = entry.text("hashing_algorithm", "")
    if text == NO_PASSWORD:
        return None
    try:
        # Exports from before 3.6 name none, and have MD5's size.
        wanted = Algorithm(named) if named else None
    except ValueError:
        entry.notes.append(
            f"hashing_algorithm {shown(named)} is not known: no password until one is set"
        )
        return None
    try:
        parsed = PasswordHash.parse(text, wanted)
    except UnusableHash as error:
        raise Fault(f"password_hash {error}") from None
    if not named and parsed.algorithm is not Algorithm.MD5:
        entry.notes.append(f"no hashing_algorithm: taken for {parsed.algorithm.value} by its size")
    return parsed


def permission(entry: Entry, context: Context) -> tuple[Key, Permission]:
    """Read what a user may do in a virtual host."""
    user, virtual_host = entry.name("user"), context.host_of(entry)
    patterns = {right.value: context.require_pattern(entry, right.value) for right in Right}
    return (virtual_host, user), Permission(user=user, virtual_host=virtual_host, **patterns)


# -------------------------------------------------------------------------------------- streams


def policy(entry: Entry, context: Context) -> tuple[Key, Policy]:
    """Read a policy; also what it says of other things than streams, to be given back.

    A policy without a word about streams is kept too: of those that fit a name only the one of the
    highest priority counts, so another would take its place.
    """
    taken = _policy(entry, context, check_policy)
    return (context.host_of(entry), taken.name), taken


def operator_policy(entry: Entry, context: Context) -> tuple[Key, Policy]:
    """Read a parameter that is an operators' policy."""
    said = Entry({**entry.mapping("value"), "name": entry.name()})
    taken = _policy(said, context, check_operator_policy)
    entry.notes.extend(said.notes)
    return (context.host_of(entry), taken.name), taken


def _policy(entry: Entry, context: Context, check: Callable[[Policy], object]) -> Policy:
    taken = POLICIES.taken(entry, is_outer=True, name=entry.name())
    apply_to, definition = taken.apply_to, taken.definition
    for key in sorted(POLICY_KEYS & definition.keys()):
        _require_kind(f"definition.{key}", definition[key], is_text=key in _POLICY_TEXTS)
    context.require_pattern(entry, "pattern")
    if apply_to not in APPLY_TO:
        raise Fault(f"apply-to is {shown(apply_to)}")
    _named(taken.name, "policy")
    try:
        check(taken)
        check_values(definition)
    except Unusable as error:
        raise Skip(str(error)) from None
    if apply_to == "exchanges" and definition.keys() == {ALTERNATE_EXCHANGE}:
        pass  # it acts here as there
    elif apply_to not in _STREAM_TARGETS:
        entry.notes.append(f"is for {apply_to}: kept for an export, no more")
    elif why := not_of_streams(definition):
        entry.notes.append(f"does not apply to streams because of {', '.join(why)}"[:200])
    elif others := sorted(definition.keys() - POLICY_KEYS):
        entry.notes.append(
            f"means nothing to a stream, kept for an export: {', '.join(others)}"[:200]
        )
    return taken


def _require_kind(name: str, value: object, *, is_text: bool) -> None:
    if is_text and not isinstance(value, str):
        raise Fault(f"{name} is {shown(value)}, not text")
    if not is_text and not is_integer(value):
        raise Fault(f"{name} is {shown(value)}, not a whole number")


def stream(entry: Entry, context: Context) -> tuple[Key, Stream]:
    """Read a queue that is a stream."""
    virtual_host = context.host_of(entry)
    name = _LINE_ENDS.sub("", entry.name())
    if name != entry.name():
        entry.notes.append("line ends in the name left out")
    given = entry.mapping("arguments")
    kind = entry.given("type") or given.get("x-queue-type") or context.queue_types.get(virtual_host)
    if not isinstance(kind, str | None):
        raise Fault(f"type is {shown(kind)}, not text")
    if kind != "stream":
        raise Skip(f"is a {kind or 'classic'} queue, not a stream"[:200])
    if not name:
        raise Fault("name is empty")
    if name.startswith(RESERVED_PREFIX):
        raise Skip(f"names that begin with {RESERVED_PREFIX} are reserved")
    if entry.flag("auto_delete", default=False) or entry.flag("exclusive", default=False):
        raise Fault("is a stream that goes with its connection, which streams never do")
    if not entry.flag("durable", default=True):
        entry.notes.append("is durable here, as streams are")
    return (virtual_host, name), Stream(name, _stream_arguments(entry, given))


def _stream_arguments(entry: Entry, given: Mapping[str, object]) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for name, value in sorted(given.items()):
        if name == "x-queue-type":
            continue
        if name not in STREAM_ARGUMENTS:
            entry.notes.append(f"argument {name[:100]} left out: streams have none such")
            continue
        _require_kind(f"argument {name}", value, is_text=name in _TEXT_ARGUMENTS)
        text = {STREAM_ARGUMENTS[name]: str(value)}
        try:
            known = StreamArguments.parse(text).texts()
        except InvalidArgument as error:
            entry.notes.append(f"argument left out: {error}")
            continue
        if not known:
            entry.notes.append(f"argument {name} left out: it is not known")
        arguments |= known
    return arguments


def exchange(entry: Entry, context: Context) -> tuple[Key, Exchange]:
    """Read an exchange."""
    name = entry.name()
    kind = entry.text("type")
    if not name or name.startswith(RESERVED_PREFIX):
        raise Needless("is there from the start, or not at all")
    if kind not in EXCHANGE_TYPES:
        raise Skip(f"type {shown(kind)} is not known; there are {', '.join(EXCHANGE_TYPES)}")
    taken = EXCHANGES.taken(entry, is_outer=True, name=name, type=kind)
    if not isinstance(taken.arguments.get(ALTERNATE_EXCHANGE, ""), str):
        entry.notes.append(f"{ALTERNATE_EXCHANGE} is not the name of an exchange, so there is none")
    return (context.host_of(entry), name), taken


def binding(entry: Entry, context: Context) -> tuple[Key, Binding]:
    """Read a binding from an exchange to a stream."""
    source = entry.name("source")
    if not source:
        raise Needless("every stream is bound to the default exchange anyway")
    if entry.text("destination_type", "queue") != "queue":
        raise Skip("leads to an exchange; here bindings lead to streams")
    destination = _LINE_ENDS.sub("", entry.name("destination"))
    routing_key = entry.name("routing_key") if "routing_key" in entry else ""
    taken = BINDINGS.taken(
        entry, is_outer=True, source=source, destination=destination, routing_key=routing_key
    )
    return binding_key(context.host_of(entry), taken), taken
