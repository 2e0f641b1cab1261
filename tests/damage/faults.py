"""Faults in files of a data directory, drawn from a seed. Add a kind: a function in the list."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FAULTS_MAX: Final = 20
_WEIGHTS: Final = {"chunks": 6, "journal": 6, "table of tracking": 3, "lock": 0}
"""How likely files of a kind are; 1 for the others."""
_HEAD_BYTES: Final = 96
_TAIL_BYTES: Final = 128


@dataclass(frozen=True)
class Target:
    """What faults are made to.

    Attributes:
        directory: The data directory.
        kinds: Files by what they hold (paths in the directory).
        older: Copies of the directory from earlier in its history.
    """

    directory: Path
    kinds: Mapping[str, Sequence[str]]
    older: Sequence[Path] = ()


@dataclass
class Fault:
    """One fault: what was done, in words, and the files that it touched."""

    what: str
    files: set[str] = field(default_factory=set)


Make = Callable[[random.Random, Target, str], Fault]
"""Makes a fault in a file, which exists."""


def flip(chance: random.Random, target: Target, name: str) -> Fault:
    content = bytearray((target.directory / name).read_bytes())
    if not content:
        return Fault(f"nothing: {name} is empty")
    place, bit = _place(chance, content), chance.randrange(8)
    content[place] ^= 1 << bit
    (target.directory / name).write_bytes(content)
    return Fault(f"bit {bit} of byte {place} of {name} flipped", {name})


def zero(chance: random.Random, target: Target, name: str) -> Fault:
    content = bytearray((target.directory / name).read_bytes())
    if not content:
        return Fault(f"nothing: {name} is empty")
    size = chance.choice((512, 4096))
    begin = _place(chance, content) // size * size
    content[begin : begin + size] = bytes(len(content[begin : begin + size]))
    (target.directory / name).write_bytes(content)
    return Fault(f"{size} bytes from {begin} of {name} zeroed", {name})


def cut(chance: random.Random, target: Target, name: str) -> Fault:
    place = _place(chance, (target.directory / name).read_bytes())
    os.truncate(target.directory / name, place)
    return Fault(f"{name} cut at {place}", {name})


def empty(chance: random.Random, target: Target, name: str) -> Fault:
    del chance
    os.truncate(target.directory / name, 0)
    return Fault(f"{name} emptied", {name})


def remove(chance: random.Random, target: Target, name: str) -> Fault:
    del chance
    (target.directory / name).unlink()
    return Fault(f"{name} removed", {name})


def swap(chance: random.Random, target: Target, name: str) -> Fault:
    beside = (target.directory / name).parent
    other = chance.choice(sorted(path for path in beside.iterdir() if path.is_file()))
    here, there = (target.directory / name).read_bytes(), other.read_bytes()
    (target.directory / name).write_bytes(there)
    other.write_bytes(here)
    second = str(other.relative_to(target.directory))
    return Fault(f"{name} and {second} swapped", {name, second})


def age(chance: random.Random, target: Target, name: str) -> Fault:
    copies = [older / name for older in target.older if (older / name).exists()]
    if not copies:
        return Fault(f"nothing: {name} was not there before")
    copy = chance.choice(copies)
    shutil.copyfile(copy, target.directory / name)
    return Fault(f"{name} replaced by that of {copy.parents[name.count('/')].name}", {name})


def double(chance: random.Random, target: Target, name: str) -> Fault:
    content = (target.directory / name).read_bytes()
    if chance.random() < 0.5:
        (target.directory / name).write_bytes(content + content)
        return Fault(f"{name} has its bytes twice", {name})
    beside = (target.directory / name).parent
    numbers = [int(path.name) for path in beside.iterdir() if path.name.isdigit()]
    copy = beside / str(max(numbers, default=0) + chance.choice((1, 2, 100)))
    copy.write_bytes(content)
    return Fault(f"{name} copied to {copy.relative_to(target.directory)}", set())


MAKES: Final[Sequence[Make]] = (
    *(flip, flip, flip, flip, zero, zero, cut, cut),
    *(empty, remove, swap, age, double),
)


def make_faults(seed: int, target: Target) -> list[Fault]:
    """Make one to twenty faults in files of up to three kinds; say what was done."""
    chance = random.Random(seed)
    count = 1 if chance.random() < 0.5 else chance.randint(2, FAULTS_MAX)
    names = sorted(target.kinds)
    weights = [_WEIGHTS.get(name, 1) for name in names]
    kinds = chance.choices(names, weights, k=1 if count == 1 else chance.randint(1, 3))
    faults: list[Fault] = []
    for _ in range(count):
        files = [
            name
            for name in target.kinds[chance.choice(kinds)]
            if (target.directory / name).is_file()
        ]
        if files:
            faults.append(chance.choice(MAKES)(chance, target, chance.choice(files)))
    return faults


def _place(chance: random.Random, content: bytes | bytearray) -> int:
    """Draw a byte; near the ends of what is written is likely, in the zeros behind it is not."""
    written = len(content.rstrip(b"\0"))
    draw = chance.random()
    if draw < 0.2:
        place = chance.randrange(_HEAD_BYTES)
    elif draw < 0.5:
        place = written - 1 - chance.randrange(_TAIL_BYTES)
    elif draw < 0.97:
        place = chance.randrange(max(written, 1))
    else:
        place = chance.randrange(max(len(content), 1))
    return min(max(place, 0), max(len(content) - 1, 0))
