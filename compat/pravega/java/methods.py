"""Public methods of Pravega's Java client, and which of them programs call.

`javap` reads both out of compiled classes. Left out are methods that are no calls of a user: those
of nested classes that the compiler or Lombok made, `equals`, `hashCode` and `toString`, and what
only the client itself makes or calls (`INTERNAL`).
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

PACKAGE: Final = "io/pravega/client/"
INTERNAL: Final = (
    "/impl/",
    "/notifications/NotificationSystem",
    "/notifications/NotifierFactory",
    "/notifications/notifier/",
    "/security/auth/",
    "/watermark/",
    "Serializer$",
    "Exception",
)
"""Parts of names of classes: the client makes and calls what is in these."""
OF_EVERY_CLASS: Final = frozenset(
    ("equals", "hashCode", "toString", "values", "valueOf", "compareTo", "canEqual")
)
_JAVAP_S: Final = 120.0
_CLASS: Final = re.compile(r"^public .*?\b(?:class|interface|enum) ([\w.$]+)(.*)")
_CLIENTS: Final = re.compile(r"io\.pravega\.client\.[\w.$]+")
_METHOD: Final = re.compile(r"^  public .*?([\w.$]+)\(.*\).*;$")
_DESCRIPTOR: Final = re.compile(r"^    descriptor: (\(.*)$")
_CALL: Final = re.compile(
    r"= (?:Interface)?Methodref\s+\S+\s+// (" + PACKAGE + r'[\w/$]+)\."?([\w$<>]+)"?:(\(\S*\)\S+)'
)


class Method(NamedTuple):
    """A method: its class as `io/pravega/client/Some`, its name, and the types that it takes."""

    of: str
    name: str
    takes: str

    def __str__(self) -> str:
        """Return it as the client's documentation has it, with the bytecode's names of types."""
        return f"{self.of.removeprefix(PACKAGE).replace('/', '.')}.{self.name}{self.takes}"


@dataclass(frozen=True, slots=True)
class Client:
    """Offer of a client: its methods, and how its classes hang together.

    Attributes:
        methods: The public methods that are calls of a user.
        above: The classes and interfaces that each class extends or implements.
    """

    methods: frozenset[Method]
    above: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, jar: Path) -> Self:
        """Read a jar."""
        with zipfile.ZipFile(jar) as opened:
            names = [name.removesuffix(".class") for name in opened.namelist()]
        classes = [
            name.replace("/", ".")
            for name in names
            if name.startswith(PACKAGE)
            and not any(part in name for part in INTERNAL)
            and not re.search(r"\$\d|\$SerializedForm", name)
        ]
        above: dict[str, frozenset[str]] = {}
        said = _javap("-public", "-s", "-cp", str(jar), *classes)
        methods = frozenset(
            method for method in declared(said, above) if method.name not in OF_EVERY_CLASS
        )
        return cls(methods, above)

    def uncalled(self, calls: Iterable[Method]) -> list[Method]:
        """Return the methods that none of some calls reaches, which may name a class below."""
        reached: set[Method] = set()
        left = list(calls)
        while left:
            call = left.pop()
            if call not in reached:
                reached.add(call)
                left += (call._replace(of=each) for each in self.above.get(call.of, ()))
        return sorted(self.methods - reached)


def called(classes: Iterable[Path]) -> set[Method]:
    """Return the methods of the client that compiled classes call."""
    said = _javap("-v", "-p", *map(str, classes))
    return {
        Method(of, name, descriptor.partition(")")[0] + ")")
        for of, name, descriptor in _CALL.findall(said)
    }


def _javap(*arguments: str) -> str:
    done = subprocess.run(
        ["javap", *arguments],
        capture_output=True,
        text=True,
        timeout=_JAVAP_S,
        check=True,
    )
    return done.stdout


def declared(said: str, above: dict[str, frozenset[str]]) -> Iterator[Method]:
    """Yield the public methods in what javap says; note what is above each class."""
    of = name = ""
    for line in said.splitlines():
        if line.startswith("}"):
            of = ""
        elif found := _CLASS.match(line):
            of = found[1].replace(".", "/")
            above[of] = frozenset(each.replace(".", "/") for each in _CLIENTS.findall(found[2]))
        elif of and (found := _METHOD.match(line)):
            is_constructor = found[1].replace(".", "/") == of
            name = "<init>" if is_constructor else found[1].split(".")[-1]
        elif of and name and (found := _DESCRIPTOR.match(line)):
            yield Method(of, name, found[1].partition(")")[0] + ")")
            name = ""
