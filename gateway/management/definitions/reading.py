"""RabbitMQ's definitions, from bytes to objects: all of them judged, none of them compared.

Pure: nothing is asked of the server, so that it may run anywhere and on any bytes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.broker.access.model import VIRTUAL_HOST_LIMITS
from gateway.management.definitions.document import read_document
from gateway.management.definitions.report import ImportOutcome, ReportRow
from gateway.management.errors import PROBLEMS_SHOWN_MAX, DefinitionsError, shown
from gateway.management.kinds import table
from gateway.management.kinds.entry import Context, DefinitionEntry, Fault, Needless, Skip, label
from gateway.management.kinds.kind import PARAMETERS, Definitions, Key, Notes, ObjectKind
from gateway.management.kinds.virtual_hosts import HOSTS, Host

_SINGLE_HOST: Final = "single_virtual_host"
_NOT_HERE: Final[Mapping[str, tuple[str, str, str]]] = {
    # section: the kind, the field that names an entry, why it is skipped
    "topic_permissions": ("topic permission", "user", "there are no topic permissions"),
    PARAMETERS: ("parameter", "name", "belongs to a plugin that is not here"),
    "global_parameters": ("global parameter", "name", "nothing here reads it"),
}
_OF_HOST: Final = ("description", "metadata", "limits", "tags", "default_queue_type")
"""Fields of a virtual host that the export of a single one has at its top."""
SECTIONS: Final = (
    *(kind.section for kind in table.KINDS if kind.section != PARAMETERS),
    *_NOT_HERE,
)
"""Names of the lists that are read."""
_NOBODYS: Final = frozenset({"global_parameters"})
"""Every export has some, which say things about its cluster."""


@dataclass(slots=True)
class ReadDefinitions:
    """Content of a definitions file.

    Attributes:
        definitions: Everything that has a counterpart here.
        skipped: A row for everything that has none.
        notes: Changes that were made to objects.
        limits: Limits for virtual hosts that are not in the file.
        only_named: Virtual hosts of which the file says no more than the name.
        faulty: Objects of entries with faults, by kind and name, so that they are not missed.
        problems: A line for each fault, the first ones of many.
        problem_count: The number of faults.
    """

    definitions: Definitions = field(default_factory=Definitions)
    skipped: list[ReportRow] = field(default_factory=list)
    notes: Notes = field(default_factory=dict)
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
    described = {field: document[field] for field in _OF_HOST if field in document}
    if only_host is not None:
        document = document | {"vhosts": [described], "users": []}
    reader = _Reader(document, only_host)
    if only_host is not None and not described:
        reader.result.only_named.add(("", only_host))
    return reader.read()


def _only_host(document: Mapping[str, object], wanted: str | None) -> str | None:
    """Return where the export of one virtual host goes, None for that of a whole broker."""
    original = document.get("original_vhost_name")
    of_cluster = {kind.section for kind in table.KINDS if kind.is_of_cluster}
    within_hosts = {kind.section for kind in table.KINDS if kind.in_host} | {"topic_permissions"}
    is_whole = bool(document.keys() & of_cluster) or any(
        _names_a_host(document, section, wanted) for section in within_hosts
    )
    # What says nothing is of no virtual host in particular.
    is_nothing = not (wanted or original or any(document.get(each) for each in within_hosts))
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


class _Reader:
    def __init__(self, document: Mapping[str, object], only_host: str | None) -> None:
        self._document = document
        self.result = ReadDefinitions()
        self._queue_types: dict[str, str | None] = {}
        self._context = Context(only_host, self._queue_types)
        self._components = {kind.component: kind for kind in table.KINDS if kind.component}

    def read(self) -> ReadDefinitions:
        """Read all of it."""
        for kind in table.KINDS:
            if kind.section != PARAMETERS:
                for index, content in self._entries(kind.section):
                    self._read_entry(kind, index, content)
        self._take_parameters()
        self._skip_the_rest()
        for kind in table.KINDS:
            kind.finish(self.result.definitions, self.result.notes)
        return self.result

    def _read_entry(self, kind: ObjectKind[Any], index: int, content: object) -> None:
        where = label(kind.section, index, content, kind.named_by)
        try:
            entry = DefinitionEntry(content)
            key, thing = kind.read(entry, self._context)
        except Fault as fault:
            self.result.complain(f"{where}: {fault}")
            if isinstance(content, dict):
                self.result.faulty.add((kind.name, _text(content.get(kind.named_by))))
        except Skip as skip:
            assert isinstance(content, dict)
            is_lost = not isinstance(skip, Needless)
            name = kind.name_in(content)
            self._skip(kind.outer_word, content, name, str(skip), is_lost=is_lost)
        else:
            self._keep(kind, key, thing, entry.notes, where)

    def _entries(self, section: str) -> Iterable[tuple[int, object]]:
        entries = self._document.get(section, [])
        if not isinstance(entries, list):
            self.result.complain(f"{section}: is not a list")
            entries = []
        return enumerate(entries)

    def _keep(
        self, kind: ObjectKind[Any], key: Key, thing: object, notes: list[str], where: str
    ) -> None:
        known = self.result.definitions.of(kind).setdefault(key, thing)
        if known is not thing:
            if known != thing:
                self.result.complain(f"{where}: is there before, and says something else")
            return
        if notes:
            self.result.notes[kind.name, key] = notes
        if isinstance(thing, Host):
            self._queue_types[thing.name] = thing.default_queue_type

    def _skip(
        self, word: str, content: Mapping[str, Any], name: object, reason: str, *, is_lost: bool
    ) -> None:
        host = content.get("vhost", self._context.virtual_host)
        row = ReportRow(word, _text(host), _text(name), ImportOutcome.SKIPPED, reason, is_lost)
        self.result.skipped.append(row)

    def _take_parameters(self) -> None:
        """Take objects that are parameters, and limits as older exports have them."""
        for index, content in self._entries(PARAMETERS):
            component = content.get("component") if isinstance(content, dict) else None
            kind = self._components.get(component) if isinstance(component, str) else None
            if kind is HOSTS:
                self._take_limits(index, content)
            elif kind is not None:
                self._read_entry(kind, index, content)

    def _take_limits(self, index: int, content: object) -> None:
        try:
            entry = DefinitionEntry(content)
            name = self._context.host_of(entry)
            limits = entry.limits("value", VIRTUAL_HOST_LIMITS)
        except Fault as fault:
            self.result.complain(f"{label(PARAMETERS, index, content)}: {fault}")
            return
        key = "", name
        hosts, notes = self.result.definitions.of(HOSTS), self.result.notes
        known = hosts.get(key)
        if known is None:
            self.result.limits[name] = limits
            notes[HOSTS.name, key] = entry.notes
        elif not known.limits:
            hosts[key] = replace(known, limits=limits)
            if entry.notes:
                notes.setdefault((HOSTS.name, key), []).extend(entry.notes)

    def _skip_the_rest(self) -> None:
        """Write down what is in the file and has no counterpart here at all."""
        for section, (word, named_by, reason) in _NOT_HERE.items():
            for _, content in self._entries(section):
                fields = content if isinstance(content, dict) else {}
                component = fields.get("component")
                if isinstance(component, str) and component in self._components:
                    continue
                said = word if component is None else f"{word} of {_text(component)}"
                is_lost = section not in _NOBODYS
                self._skip(said, fields, fields.get(named_by), reason, is_lost=is_lost)


def _text(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else shown(value)
    return text[:200]


def row_of(kind: ObjectKind[Any], key: Key, outcome: ImportOutcome, reason: str = "") -> ReportRow:
    """Return the line of the report for an object."""
    return ReportRow(kind.word, *kind.place_of(key), outcome, reason)
