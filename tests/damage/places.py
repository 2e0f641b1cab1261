"""Damage to files of a data directory, drawn from a seed. Add a kind: a function in the list."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

Damage = Callable[[random.Random, Sequence[Path]], str]
"""Damages one of some files, and says what it did."""


def flip(chance: random.Random, files: Sequence[Path]) -> str:
    path, place = _place(chance, files)
    bit = chance.randrange(8)
    content = bytearray(path.read_bytes())
    if content:
        content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place} of {path.name}"


def zero(chance: random.Random, files: Sequence[Path]) -> str:
    path, place = _place(chance, files)
    size = chance.choice((512, 4096))
    begin = place // size * size
    content = bytearray(path.read_bytes())
    content[begin : begin + size] = bytes(len(content[begin : begin + size]))
    path.write_bytes(content)
    return f"{size} bytes from {begin} of {path.name} zeroed"


def cut(chance: random.Random, files: Sequence[Path]) -> str:
    path, place = _place(chance, files)
    os.truncate(path, place)
    return f"{path.name} cut at {place}"


def empty(chance: random.Random, files: Sequence[Path]) -> str:
    path, _ = _place(chance, files)
    os.truncate(path, 0)
    return f"{path.name} emptied"


def remove(chance: random.Random, files: Sequence[Path]) -> str:
    path, _ = _place(chance, files)
    path.unlink(missing_ok=True)
    return f"{path.name} removed"


def swap(chance: random.Random, files: Sequence[Path]) -> str:
    one, other = chance.choice(files), chance.choice(files)
    if one.exists() and other.exists():
        here, there = one.read_bytes(), other.read_bytes()
        one.write_bytes(there)
        other.write_bytes(here)
    return f"{one.name} and {other.name} swapped"


SINGLE: Final[Sequence[Damage]] = (flip, flip, flip, zero, cut, empty, remove)
"""Damage to one file; `swap` needs two."""


def damage(seed: int, files: Sequence[Path], kinds: Sequence[Damage], places_max: int) -> list[str]:
    """Damage some files at one to `places_max` places; say what was done."""
    chance = random.Random(seed)
    count = 1 if chance.random() < 0.5 else chance.randint(1, places_max)
    return [chance.choice(kinds)(chance, files) for _ in range(count)]


def _place(chance: random.Random, files: Sequence[Path]) -> tuple[Path, int]:
    """Draw a file, and a byte of it; those that matter are likely."""
    path = chance.choice([each for each in files if each.exists()] or files)
    if not path.exists():
        path.touch()
    size = path.stat().st_size
    written = len(path.read_bytes().rstrip(b"\0"))
    return path, chance.randrange(max(written, 1)) if size else 0
