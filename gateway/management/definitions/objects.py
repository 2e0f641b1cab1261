"""What definitions define, as plain values: equal if they say the same."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, TypeAlias

from gateway.management.definitions.errors import shown

Json: TypeAlias = object
"""A value of JSON: text, number, bool, None, a list or a mapping of such."""

NO_PASSWORD: Final = ""
"""The hash of a user who cannot log in with a password."""


@dataclass(frozen=True, slots=True)
class HostObject:
    """A virtual host."""

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    default_queue_type: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return self.name


@dataclass(frozen=True, slots=True)
class UserObject:
    """Somebody who may log in."""

    name: str
    password_hash: str = NO_PASSWORD
    """As RabbitMQ writes it; NO_PASSWORD for none."""
    algorithm: str | None = None
    """RabbitMQ's name of it; None tells it from the hash's size."""
    tags: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    has_foreign_hash: bool = False
    """The password is kept in a form that RabbitMQ does not have, and is not given away."""

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return self.name


@dataclass(frozen=True, slots=True)
class PermissionObject:
    """What a user may do in a virtual host, by three patterns."""

    user: str
    virtual_host: str
    configure: str
    write: str
    read: str

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return (self.virtual_host, self.user)


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """What holds for the streams of a virtual host whose names fit a pattern."""

    virtual_host: str
    name: str
    pattern: str
    apply_to: str
    definition: Mapping[str, Json]
    priority: float

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return (self.virtual_host, self.name)


@dataclass(frozen=True, slots=True)
class OperatorPolicyObject(PolicyObject):
    """The same, set by operators beside it."""


@dataclass(frozen=True, slots=True)
class StreamObject:
    """A stream."""

    virtual_host: str
    name: str
    arguments: Mapping[str, str]
    """As a Create carries them."""

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return (self.virtual_host, self.name)


@dataclass(frozen=True, slots=True)
class ExchangeObject:
    """An exchange; a super stream is one of type direct with `x-super-stream`."""

    virtual_host: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Json]

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return (self.virtual_host, self.name)

    @property
    def is_super_stream(self) -> bool:
        """Whether its bindings are partitions."""
        return self.arguments.get("x-super-stream") is True


@dataclass(frozen=True, slots=True)
class BindingObject:
    """A stream bound to an exchange."""

    virtual_host: str
    source: str
    destination: str
    routing_key: str
    arguments: Mapping[str, Json]

    @property
    def key(self) -> Hashable:
        """What there is one of."""
        return (
            self.virtual_host,
            self.source,
            self.destination,
            self.routing_key,
            repr(sorted(self.arguments.items())),
        )


DefinedObject: TypeAlias = (
    HostObject
    | UserObject
    | PermissionObject
    | PolicyObject
    | OperatorPolicyObject
    | StreamObject
    | ExchangeObject
    | BindingObject
)


@dataclass(slots=True)
class Definitions:
    """Objects by their keys, in the order in which they have to be made."""

    hosts: dict[Hashable, HostObject] = field(default_factory=dict)
    users: dict[Hashable, UserObject] = field(default_factory=dict)
    permissions: dict[Hashable, PermissionObject] = field(default_factory=dict)
    policies: dict[Hashable, PolicyObject] = field(default_factory=dict)
    operator_policies: dict[Hashable, OperatorPolicyObject] = field(default_factory=dict)
    streams: dict[Hashable, StreamObject] = field(default_factory=dict)
    exchanges: dict[Hashable, ExchangeObject] = field(default_factory=dict)
    bindings: dict[Hashable, BindingObject] = field(default_factory=dict)


KINDS: Final = tuple(kind.name for kind in fields(Definitions))
"""The kinds, in the order in which they have to be made."""


def place_of(thing: DefinedObject) -> tuple[str, str]:
    """Return the virtual host and the name under which a person looks for an object."""
    match thing:
        case HostObject() | UserObject():
            return "", thing.name
        case PermissionObject():
            return thing.virtual_host, thing.user
        case BindingObject():
            return thing.virtual_host, f"{thing.source} → {thing.destination}"
        case _:
            return thing.virtual_host, thing.name


def named(thing: DefinedObject) -> str:
    """Say in a message which object is meant."""
    match thing:
        case HostObject():
            return f"virtual host {shown(thing.name)}"
        case UserObject():
            return f"user {shown(thing.name)}"
        case PermissionObject():
            what = f"permission of {shown(thing.user)}"
        case BindingObject():
            what = f"binding from {shown(thing.source)} to {shown(thing.destination)}"
        case OperatorPolicyObject():
            what = f"operator policy {shown(thing.name)}"
        case PolicyObject():
            what = f"policy {shown(thing.name)}"
        case StreamObject():
            what = f"stream {shown(thing.name)}"
        case _:
            what = f"exchange {shown(thing.name)}"
    return f"{what} in virtual host {shown(thing.virtual_host)}"
