"""Groups of readers by Pravega's Java client, scene by scene, and the bytes of what they agree.

    python -m compat.pravega.java.groups FILE

plays the scenes on Hutch, and writes down what the client said and the bytes that it wrote.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from types import TracebackType
from typing import Final, NamedTuple, Self

from compat.clients.programs import Program
from compat.pravega.connection import Connection
from compat.pravega.servers import Address, Served, hutch
from gateway.pravega.controller.readers.states import MARK
from hutch.pravega import messages as m
from hutch.pravega.codec import encode
from hutch.pravega.layout import WireMessage

GROUPS: Final = Program(
    "Pravega's Java client",
    "java-groups",
    ("java", "javac", "mvn"),
    parent=Path(__file__).parents[1],
)
SCOPE: Final = "golden"
END_S: Final = 60.0
_NOT_SET: Final = -(2**63)
_LETTERS: Final = 88


class Said(NamedTuple):
    """Words of the client on a group, after a scene.

    Attributes:
        group: Its name.
        members: Readers that are online, in order.
        unread: Unread bytes, or the name of the exception in their place.
        rest: The last checkpoint, the positions and the ends, as the program prints them.
    """

    group: str
    members: list[str]
    unread: str
    rest: tuple[str, ...]

    @classmethod
    def parsed(cls, line: str) -> Self:
        """Read a line of the program."""
        group, *fields = line.split(" ")
        values = dict(each.split("=", 1) for each in fields)
        members = [each for each in values["members"].split(",") if each]
        return cls(group, members, values["unread"], tuple(fields[2:]))

    def line(self) -> str:
        """Return the line."""
        members = ",".join(self.members)
        return " ".join((self.group, f"members={members}", f"unread={self.unread}", *self.rest))


class Scenes:
    """The program, at work in a scope of a server, which it makes."""

    def __init__(self, controller: Address, scope: str, *user: str) -> None:
        """Start it, as a user with a password where there are users.

        Raises:
            Unavailable: It cannot be built here.
        """
        self._process = subprocess.Popen(
            [*GROUPS.command(), "tcp://{}:{}".format(*controller), scope, *user],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def __iter__(self) -> Iterator[tuple[str, list[Said]]]:
        """Yield the name of each scene with what is said of the groups; they stay so meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said: list[Said] = []
        for line in self._process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word != "scene":
                said.append(Said.parsed(line.rstrip("\n")))
                continue
            yield rest, said
            said = []
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        assert self._process.wait(END_S) == 0, "the program has failed, as it printed"


class Recorder:
    """Takes the bytes that a group's segment gets, scene by scene."""

    def __init__(self, connection: Connection, group: str, token: str = "") -> None:
        self._connection = connection
        self._token = token
        self._segment = f"{SCOPE}/_RG{group}/0.#epoch.0"
        self.data = bytearray()

    def place(self) -> str:
        """Take what is new; return start, mark and length of the segment in words."""
        info = self._ask(m.GetStreamSegmentInfo(1, self._segment, self._token))
        mark = self._ask(m.GetSegmentAttribute(1, self._segment, MARK, self._token))
        assert isinstance(info, m.StreamSegmentInfo)
        assert isinstance(mark, m.SegmentAttribute)
        while len(self.data) < info.write_offset:
            read = self._ask(m.ReadSegment(self._segment, len(self.data), 1 << 16, self._token, 1))
            assert isinstance(read, m.SegmentRead)
            self.data += read.data
        words = "none" if mark.value == _NOT_SET else str(mark.value)
        return f"start={info.start_offset} mark={words} length={info.write_offset}"

    def _ask(self, message: WireMessage) -> WireMessage:
        self._connection.send(encode(message))
        answer = self._connection.message(time.monotonic() + END_S)
        assert answer is not None
        return answer


def recorded(server: Served) -> Iterator[str]:
    """Play the scenes; yield the lines of a file."""
    recorders: dict[str, Recorder] = {}
    with Scenes(server.controller, SCOPE) as scenes:
        for scene, groups in scenes:
            for said in groups:
                if said.group not in recorders:
                    recorders[said.group] = Recorder(Connection(server.address), said.group)
                yield f"{scene} {said.line()} {recorders[said.group].place()}"
    for group, recorder in recorders.items():
        for part in wrap(recorder.data.hex(), _LETTERS):
            yield f"bytes {group} {part}"


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m compat.pravega.java.groups")
    parser.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, hutch(Path(folder)) as server:
        write(options.file, recorded(server))


if __name__ == "__main__":
    main()
