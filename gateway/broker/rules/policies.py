"""Policies: arguments that administrators give to many streams at once, and change while they live.

    name → JSON: pattern, apply_to, definition, priority

Of the policies whose pattern is found in a stream's name the one of the highest priority counts,
and of equal ones the first by name; it alone. What it defines takes the place of what the stream
was created with. Definitions may hold more than streams know: it is kept for the export. A policy
with a setting that streams do not have applies to no stream at all: the next one counts.

Operators set policies of their own, chosen among themselves in the same way; the one that counts
stands beside the other, and of two sizes the smaller one holds.

Source: RabbitMQ, "Policies"; that policies stand above arguments: "Streams", Data Retention.
"""

import dataclasses
import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Final

from gateway.broker.access.model import check_name
from gateway.broker.errors import AccessError, UnusableValue
from gateway.broker.kept_table import KeptTable
from gateway.broker.patterns import Pattern, UnusablePattern
from gateway.broker.rules.arguments import InvalidStreamArgument, StreamArguments
from gateway.broker.rules.policy_settings import (
    DEFINED,
    KNOWN_TO_OPERATORS,
    check_known,
    merged,
    not_of_streams,
)
from gateway.broker.rules.ranking import Ranking, RankingMatch, Took
from gateway.broker.yielding import TurnBudget
from gateway.log.names import operator_policy_table, policy_table
from gateway.logs import NameInHost, RateLimitedLog
from gateway.pending import nothing
from store.api import SegmentStore

log = logging.getLogger(__name__)

_LIMITS: Final = frozenset(("max-length-bytes", "max-age"))

APPLY_TO: Final = (
    "all",
    "queues",
    "streams",
    "classic_queues",
    "quorum_queues",
    "exchanges",
)
"""Kinds of objects that RabbitMQ's policies may be for."""
_STREAMS: Final = frozenset(("all", "queues", "streams"))
_EXCHANGES: Final = frozenset(("all", "exchanges"))

POLICY_BYTES_MAX: Final = 64 * 1024

_LONG_S: Final = 1.0
"""A search for the policy of one name that takes longer is told of: thousands of everyday patterns
take a tenth of it."""
_took_long = RateLimitedLog(
    log,
    "patterns take long, simplify or delete the slowest %s name=%s ms=%d patterns=%d ms_of_all=%d"
    " matched_with=%.80r",
)


class NoSuchPolicy(AccessError):
    """There is no policy of that name."""

    def __init__(self, name: str, called: str = "policy") -> None:
        super().__init__(f"there is no {called} {name!r}")


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy.

    Attributes:
        name: As administrators say it; 1 to 255 bytes.
        pattern: A regular expression that is sought in names.
        apply_to: One of `APPLY_TO`; those for other things than streams and exchanges are kept,
            no more.
        definition: Names of arguments to values, numbers as numbers; not empty.
        priority: The highest counts; any number.
    """

    name: str
    _: KW_ONLY
    pattern: str
    apply_to: str = "all"
    definition: Mapping[str, Any] = field(default_factory=dict)
    priority: float = 0

    @property
    def is_for_streams(self) -> bool:
        """True if it applies to the streams whose names it fits."""
        return self.apply_to in _STREAMS and not not_of_streams(self.definition)

    def pack(self) -> bytes:
        """Encode for the table."""
        fields = {
            "name": self.name,
            "pattern": self.pattern,
            "apply_to": self.apply_to,
            "definition": dict(self.definition),
            "priority": self.priority,
        }
        return json.dumps(fields).encode()

    @classmethod
    def unpack(cls, value: bytes) -> "Policy":
        """Undo `pack`."""
        return cls(**json.loads(value))


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A policy that was found good."""

    policy: Policy
    pattern: Pattern
    defined: StreamArguments
    fields: Mapping[str, Any]
    """The fields of `defined` that are not None."""
    packed: bytes
    """The policy for the table."""

    @property
    def rank(self) -> tuple[float, str]:
        """Its place among all; the lowest counts."""
        return -self.policy.priority, self.policy.name


def check_policy(policy: Policy) -> StreamArguments:
    """Return the settings of a policy for streams. Raises Unusable for one that cannot be."""
    return _ready(policy).defined


def _ready(policy: Policy) -> _Ready:
    check_name(policy.name, "policy")
    if policy.apply_to not in APPLY_TO:
        raise UnusableValue(
            f"a policy applies to one of {', '.join(APPLY_TO)}, not {policy.apply_to!r}"
        )
    if type(policy.priority) not in (int, float) or not _is_finite(policy.priority):
        raise UnusableValue("the priority of a policy must be a number")
    try:
        packed = policy.pack()
    except (TypeError, ValueError) as error:
        raise UnusableValue(
            f"the definition of policy {policy.name!r} is not valid JSON: {error}"
        ) from error
    if len(packed) > POLICY_BYTES_MAX:
        raise UnusableValue(f"a policy must have at most {POLICY_BYTES_MAX} bytes")
    try:
        pattern = Pattern(policy.pattern)
    except UnusablePattern as error:
        raise UnusableValue(f"the pattern of policy {policy.name!r} {error}") from error
    defined = _defined(policy.definition)
    values = ((each.name, getattr(defined, each.name)) for each in dataclasses.fields(defined))
    fields = {name: value for name, value in values if value is not None}
    return _Ready(policy, pattern, defined, fields, packed)


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)  # which an int may be too large for


def _defined(definition: Mapping[str, Any]) -> StreamArguments:
    if not definition:
        raise UnusableValue("the definition of a policy is empty")
    texts = {name: _text_of(name, definition[name]) for name in DEFINED if name in definition}
    try:
        return StreamArguments.parse(texts, is_strict=True)
    except InvalidStreamArgument as error:
        raise UnusableValue(str(error)) from error


def _text_of(name: str, value: object) -> str:
    kind: type = str if name == "max-age" else int
    if type(value) is not kind:  # a bool is an int to isinstance
        raise UnusableValue(f"{name} is no {'text' if kind is str else 'whole number'}")
    return str(value)


class Governed:
    """A stream or an exchange, with the policies that hold for it.

    It is as it was when they were last looked for, by `Policies.look_for_stream` or
    `look_for_exchange`; nothing before that.
    """

    __slots__ = ("of_operators", "of_users")

    def __init__(self, name: str) -> None:
        """`name` is that which patterns are sought in."""
        self.of_users: RankingMatch[_Ready] = RankingMatch(name)
        self.of_operators: RankingMatch[_Ready] = RankingMatch(name)

    def end(self) -> None:
        """Look for nothing more: it is deleted."""
        self.of_users.is_over = self.of_operators.is_over = True

    @property
    def policy(self) -> Policy | None:
        """The policy that counts."""
        return None if self.of_users.first is None else self.of_users.first.policy

    @property
    def operator_policy(self) -> Policy | None:
        """The operators' policy that counts."""
        return None if self.of_operators.first is None else self.of_operators.first.policy

    @property
    def state(self) -> tuple[object, object]:
        """Something that is equal as long as neither of the two changes."""
        return self.of_users.first, self.of_operators.first

    @property
    def definition(self) -> Mapping[str, Any]:
        """The definition of the policy that counts; empty for none."""
        return {} if self.policy is None else self.policy.definition

    def effective(self) -> dict[str, Any]:
        """Return all that both say."""
        limits = {} if self.operator_policy is None else self.operator_policy.definition
        return merged(self.definition, limits)

    def over(self, arguments: StreamArguments) -> StreamArguments:
        """Return a stream's arguments, with those of policies in their place."""
        user, operator = self.of_users.first, self.of_operators.first
        defined = {} if user is None else user.fields
        if operator is not None and operator.fields:
            defined = merged(defined, operator.fields)
        return dataclasses.replace(arguments, **defined) if defined else arguments


class PolicyTable:
    """Policies of one virtual host, from which one counts for a stream.

    Attributes:
        changed: Called after every change.
        for_streams: Those that are for streams, in order.
        for_exchanges: Those that are for exchanges, in order.
    """

    def __init__(
        self, kept: KeptTable, turns: TurnBudget, virtual_host: str, called: str = "policy"
    ) -> None:
        self._kept = kept
        self._called = called
        self._ready: dict[str, _Ready] = {}
        looked = partial(_looked, called, virtual_host)
        self.for_streams: Ranking[_Ready] = Ranking(turns, looked)
        self.for_exchanges: Ranking[_Ready] = Ranking(turns, looked)
        self.changed: Callable[[], object] = nothing

    def all(self) -> list[Policy]:
        """Return all policies, by name."""
        return [self._ready[name].policy for name in sorted(self._ready)]

    def find(self, name: str) -> Policy | None:
        """Return the policy of a name; None if there is none."""
        found = self._ready.get(name)
        return None if found is None else found.policy

    async def put(self, policy: Policy) -> bool:
        """Write a policy down; it counts at once. Return whether there was none of that name.

        Raises:
            Unusable: It says what cannot be; nothing was changed.
            StoreError: The store refused.
        """
        ready = _ready(policy)
        # A limit makes records go, which is what a full disk needs.
        is_limit = not _LIMITS.isdisjoint(policy.definition)
        await self._kept.write({policy.name.encode(): ready.packed}, gives_space=is_limit)
        is_new = policy.name not in self._ready
        self._take_out(policy.name)
        self._take_in(ready)
        log.info("%s set name=%s pattern=%s", self._called, policy.name, policy.pattern)
        if why := not_of_streams(policy.definition):
            log.warning("policy applies to no stream name=%s because_of=%s", policy.name, why)
        self.changed()
        return is_new

    async def delete(self, name: str) -> None:
        """Forget a policy: the arguments that streams were created with count again.

        Raises:
            NoSuchPolicy: There is none of that name.
            StoreError: The store refused.
        """
        if name not in self._ready:
            raise NoSuchPolicy(name, self._called)
        await self._kept.write({name.encode(): None})
        self._take_out(name)
        log.info("%s deleted name=%s", self._called, name)
        self.changed()

    async def load(self) -> None:
        """Read all that is kept. Raises StoreError."""
        for key, row in (await self._kept.load()).items():
            policy = self._kept.unpacked(key, Policy.unpack, row)
            try:
                self._take_in(_ready(policy))
            except UnusableValue as error:  # another version found it good
                log.error("policy cannot be used name=%s error=%s", policy.name, error)  # noqa: TRY400  # for the operator

    def _take_in(self, ready: _Ready) -> None:
        self._ready[ready.policy.name] = ready
        if ready.policy.is_for_streams:
            self.for_streams.add(ready)
        if ready.policy.apply_to in _EXCHANGES:
            self.for_exchanges.add(ready)

    def _take_out(self, name: str) -> None:
        if (ready := self._ready.pop(name, None)) is not None:
            self.for_streams.discard(ready)
            self.for_exchanges.discard(ready)


class Policies(PolicyTable):
    """The policies of one virtual host. Create it with `open_policies`.

    Attributes:
        operators: Those that operators set beside them; a change there is one here as well.
    """

    def __init__(
        self, kept: KeptTable, turns: TurnBudget, virtual_host: str, operators: PolicyTable
    ) -> None:
        super().__init__(kept, turns, virtual_host)
        self.operators = operators
        operators.changed = self._operators_changed

    def let_go(self) -> None:
        """Report no more changes: there are no streams."""
        self.changed = self.operators.changed = nothing

    def _operators_changed(self) -> None:
        self.changed()

    async def look_for_stream(self, governed: Governed) -> None:
        """Find the policies that count for a stream; others have turns meanwhile."""
        await self.for_streams.look_for(governed.of_users)
        await self.operators.for_streams.look_for(governed.of_operators)

    async def look_for_exchange(self, governed: Governed) -> None:
        """Find the policy that counts for an exchange; others have turns meanwhile."""
        await self.for_exchanges.look_for(governed.of_users)

    async def load(self) -> None:
        """Read all that is kept. Raises StoreError."""
        await self.operators.load()
        await super().load()


def check_operator_policy(policy: Policy) -> None:
    """Refuse a definition that no operator's policy can have. Raises Unusable."""
    check_policy(policy)
    check_known(policy.definition, KNOWN_TO_OPERATORS)


def _looked(called: str, virtual_host: str, name: str, took: Took[_Ready]) -> None:
    if took.longest is not None and took.seconds > _LONG_S:
        place = called, NameInHost(took.longest.policy.name, virtual_host)
        slowest_ms, all_ms = int(took.longest_s * 1_000), int(took.seconds * 1_000)
        _took_long.warning(*place, slowest_ms, took.looks, all_ms, name)


async def open_policies(store: SegmentStore, virtual_host: str, turns: TurnBudget) -> Policies:
    """Open the policies of a virtual host.

    Args:
        store: Where they are.
        virtual_host: Its name.
        turns: The time that searches have together in one turn of the event loop.

    Raises:
        StoreError: The store refused.
    """
    kept = KeptTable(store, operator_policy_table(virtual_host))
    operators = PolicyTable(kept, turns, virtual_host, "operator policy")
    kept = KeptTable(store, policy_table(virtual_host))
    policies = Policies(kept, turns, virtual_host, operators)
    await policies.load()
    return policies
