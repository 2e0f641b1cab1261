"""RabbitMQ's definitions, from bytes to objects: all of them judged, none of them compared.

Pure: nothing is asked of the server, so that it may run anywhere and on any bytes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from gateway.broker.access.model import VIRTUAL_HOST_LIMITS
from gateway.broker.topology.exchange import PARTITION_ORDER
from gateway.broker.topology.exchanges import Binding
from gateway.management.definitions import sections
from gateway.management.definitions.document import read_document
from gateway.management.definitions.entry import Entry, Fault, Needless, Skip, label
from gateway.management.definitions.errors import PROBLEMS_SHOWN_MAX, DefinitionsError, shown
from gateway.management.definitions.objects import (
    KINDS,
    Definitions,
    Host,
    Key,
    binding_key,
    is_super_stream,
    place_of,
)
from gateway.management.definitions.report import Outcome, Row
from gateway.management.definitions.sections import Context

_SINGLE_HOST: Final = "single_virtual_host"
_WITHIN_HOSTS: Final = (
    *("queues", "exchanges", "bindings", "policies", "parameters"),
    *("permissions", "topic_permissions"),
)


class _Section(NamedTuple):
    """A section of the file.

    Attributes:
        name: In the file.
        kind: The same in Definitions.
        read: Reads an entry.
        named_by: The field that names an entry.
    """

    name: str
    kind: str
    read: Callable[[Entry, Context], tuple[Key, Any]]
    named_by: str = "name"


_SECTIONS: Final = (
    _Section("vhosts", "hosts", sections.host),
    _Section("users", "users", sections.user),
    _Section("permissions", "permissions", sections.permission, "user"),
    _Section("policies", "policies", sections.policy),
    _Section("queues", "streams", sections.stream),
    _Section("exchanges", "exchanges", sections.exchange),
    _Section("bindings", "bindings", sections.binding, "source"),
)
_OPERATOR_POLICIES: Final = _Section("parameters", "operator_policies", sections.operator_policy)
_NOT_HERE: Final[Mapping[str, tuple[str, str, str]]] = {
    # section: the kind, the field that names an entry, why it is skipped
    "topic_permissions": ("topic permission", "user", "there are no topic permissions"),
    "parameters": ("parameter", "name", "belongs to a plugin that is not here"),
    "global_parameters": ("global parameter", "name", "nothing here reads it"),
}
SECTIONS: Final = (*(each.name for each in _SECTIONS), *_NOT_HERE)
"""Names of the lists that are read."""
_NOBODYS: Final = frozenset({"global_parameters"})
"""Every export has some, which say things about its cluster."""
_LIMITS_COMPONENT: Final = "vhost-limits"
_DIGITS: Final = re.compile(r"(\d{1,9})")


@dataclass(slots=True)
class ReadDefinitions:
    """Content of a definitions file.

    Attributes:
        definitions: Everything that has a counterpart here.
        skipped: A row for everything that has none.
        notes: Changes that were made to an object, by section and key.
        limits: Limits for virtual hosts that are not in the file.
        only_named: Virtual hosts of which the file says no more than the name.
        faulty: Objects of entries with faults, by section and name, so that they are not missed.
        problems: A line for each fault, the first ones of many.
        problem_count: The number of faults.
    """

    definitions: Definitions = field(default_factory=Definitions)
    skipped: list[Row] = field(default_factory=list)
    notes: dict[tuple[str, Key], list[str]] = field(default_factory=dict)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)
    only_named: set[Key] = field(default_factory=set)
    faulty: set[tuple[str, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    def complain(self, line: str) -> None:
        """Remember what is wrong; of very many only the first are kept."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_SHOWN_MAX:
            self.problems.append(line)

    def demand_no_problems(self) -> None:
        """Raise DefinitionsError if anything is wrong."""
        if self.problem_count:
            raise DefinitionsError(*self.problems, count=self.problem_count)


def read_definitions(
    content: bytes,
    *,
    virtual_host: str | None = None,
) -> ReadDefinitions:
    """Read RabbitMQ's definitions: of a whole broker, or of one virtual host.

    Args:
        content: The file.
        virtual_host: Where the export of one virtual host goes; its own name if None.

    Raises:
        DefinitionsError: A line for everything that is wrong, named by its object.
    """
    read = read_with_problems(content, virtual_host=virtual_host)
    read.demand_no_problems()
    return read


def read_with_problems(content: bytes, *, virtual_host: str | None = None) -> ReadDefinitions:
    """Read definitions, and what is wrong with single objects beside them.

    Raises:
        DefinitionsError: Nothing can be read of them.
    """
    document = read_document(content)
    only_host = _only_host(document, virtual_host)
    described = _host_of_export(document)
    if only_host is not None:
        document = document | {"vhosts": [described], "users": []}
    reader = _Reader(document, only_host)
    if only_host is not None and not described:
        reader.result.only_named.add(("", only_host))
    for section in _SECTIONS:
        reader.read(section)
    reader.take_parameters()
    reader.skip_the_rest()
    reader.order_partitions()
    return reader.result


def _only_host(document: Mapping[str, object], wanted: str | None) -> str | None:
    """Return where the export of one virtual host goes, None for that of a whole broker."""
    original = document.get("original_vhost_name")
    is_whole = bool(document.keys() & {"vhosts", "users", "permissions"}) or any(
        _names_a_host(document, section, wanted) for section in _WITHIN_HOSTS
    )
    # What says nothing is of no virtual host in particular.
    is_nothing = not (wanted or original or any(document.get(each) for each in _WITHIN_HOSTS))
    is_single = document.get("rabbitmq_definition_format") == _SINGLE_HOST
    if not is_single and (is_whole or is_nothing):
        if wanted is not None:
            raise DefinitionsError(
                "is not the export of one virtual host, so it cannot be sent into another: import"
                " it without --vhost"
            )
        return None
    name = wanted if wanted is not None else original
    if not isinstance(name, str) or not name:
        raise DefinitionsError(
            "is the export of one virtual host and does not say which: name it, by --vhost"
        )
    return name


def _names_a_host(document: Mapping[str, object], section: str, wanted: str | None) -> bool:
    """Return whether an entry names a virtual host, other than the one that is wanted anyway."""
    entries = document.get(section)
    if not isinstance(entries, list):
        return False
    return any(
        isinstance(entry, dict) and entry.get("vhost", wanted) != wanted for entry in entries
    )


def _host_of_export(document: Mapping[str, object]) -> dict[str, object]:
    described = ("description", "metadata", "limits", "tags", "default_queue_type")
    return {field: document[field] for field in described if field in document}


class _Reader:
    def __init__(self, document: Mapping[str, object], only_host: str | None) -> None:
        self._document = document
        self.result = ReadDefinitions()
        self._queue_types: dict[str, str | None] = {}
        self._context = Context(only_host, self._queue_types)

    def read(self, section: _Section) -> None:
        """Read the entries of a section."""
        for index, content in self._entries(section.name):
            self._read_entry(section, index, content)

    def _read_entry(self, section: _Section, index: int, content: object) -> None:
        where = label(section.name, index, content, section.named_by)
        try:
            entry = Entry(content)
            key, thing = section.read(entry, self._context)
        except Fault as fault:
            self.result.complain(f"{where}: {fault}")
            if isinstance(content, dict):
                self.result.faulty.add((section.kind, _text(content.get(section.named_by))))
        except Skip as skip:
            assert isinstance(content, dict)
            name = content.get(section.named_by)
            if section.kind == "bindings":
                name = f"{name} → {content.get('destination')}"
            word = "queue" if section.kind == "streams" else KINDS[section.kind]
            is_lost = not isinstance(skip, Needless)
            self._skip(word, content, name, str(skip), is_lost=is_lost)
        else:
            self._keep(section.kind, key, thing, entry.notes, where)

    def _entries(self, section: str) -> Iterable[tuple[int, object]]:
        entries = self._document.get(section, [])
        if not isinstance(entries, list):
            self.result.complain(f"{section}: is not a list")
            entries = []
        return enumerate(entries)

    def _keep(self, kind: str, key: Key, thing: object, notes: list[str], where: str) -> None:
        known = self.result.definitions.of(kind).setdefault(key, thing)
        if known is not thing:
            if known != thing:
                self.result.complain(f"{where}: is there before, and says something else")
            return
        if notes:
            self.result.notes[kind, key] = notes
        if isinstance(thing, Host):
            self._queue_types[thing.name] = thing.default_queue_type

    def _skip(
        self, word: str, content: Mapping[str, Any], name: object, reason: str, *, is_lost: bool
    ) -> None:
        host = content.get("vhost", self._context.virtual_host)
        row = Row(word, _text(host), _text(name), Outcome.SKIPPED, reason, is_lost)
        self.result.skipped.append(row)

    def take_parameters(self) -> None:
        """Take operators' policies, and the limits of virtual hosts as older exports have them."""
        hosts = self.result.definitions.hosts
        for index, content in self._entries("parameters"):
            component = content.get("component") if isinstance(content, dict) else None
            if component == sections.OPERATOR_POLICIES:
                self._read_entry(_OPERATOR_POLICIES, index, content)
            if component != _LIMITS_COMPONENT:
                continue
            try:
                entry = Entry(content)
                name = self._context.host_of(entry)
                limits = entry.limits("value", VIRTUAL_HOST_LIMITS)
            except Fault as fault:
                self.result.complain(f"{label('parameters', index, content)}: {fault}")
                continue
            key = "", name
            known = hosts.get(key)
            if known is None:
                self.result.limits[name] = limits
                self.result.notes["hosts", key] = entry.notes
            elif not known.limits:
                hosts[key] = replace(known, limits=limits)
                if entry.notes:
                    self.result.notes.setdefault(("hosts", key), []).extend(entry.notes)

    def skip_the_rest(self) -> None:
        """Write down what is in the file and has no counterpart here at all."""
        for section, (kind, named_by, reason) in _NOT_HERE.items():
            for _, content in self._entries(section):
                fields = content if isinstance(content, dict) else {}
                component = fields.get("component")
                if component in (_LIMITS_COMPONENT, sections.OPERATOR_POLICIES):
                    continue
                word = kind if component is None else f"{kind} of {_text(component)}"
                is_lost = section not in _NOBODYS
                self._skip(word, fields, fields.get(named_by), reason, is_lost=is_lost)

    def order_partitions(self) -> None:
        """Number the partitions of super streams that an older export has without order."""
        definitions = self.result.definitions
        partitions: dict[Key, dict[Key, Binding]] = {}
        for key, binding in definitions.bindings.items():
            if is_super_stream(definitions.exchanges.get(key[:2])):
                partitions.setdefault(key[:2], {})[key] = binding
        for bindings in partitions.values():
            if all(PARTITION_ORDER not in binding.arguments for binding in bindings.values()):
                self._number(sorted(bindings.items(), key=_natural_order))

    def _number(self, bindings: list[tuple[Key, Binding]]) -> None:
        kept, notes = self.result.definitions.bindings, self.result.notes
        for order, (key, binding) in enumerate(bindings):
            numbered = replace(binding, arguments={**binding.arguments, PARTITION_ORDER: order})
            del kept[key]
            new = binding_key(key[0], numbered)
            kept[new] = numbered
            notes["bindings", new] = [
                *notes.pop(("bindings", key), []),
                f"had no {PARTITION_ORDER}: by its name it is partition {order}",
            ]


def _natural_order(binding: tuple[Key, Binding]) -> list[object]:
    """`orders-10` after `orders-9`."""
    parts = _DIGITS.split(binding[1].destination)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def _text(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else shown(value)
    return text[:200]


def row_of(kind: str, key: Key, outcome: Outcome, reason: str = "") -> Row:
    """Return the line of the report for an object."""
    host, name = place_of(kind, key)
    return Row(KINDS[kind], host, name, outcome, reason)
