"""Data directories of format version 1 as crashes left them, and what version 1 found in each.

    python -m tests.golden.crashed

makes them anew with the store of the tree it runs in, so it was run on the last tree of version 1:
random histories on the simulated disk, cut at random steps in every kind of crash. The store that
was opened on each then said what is there; that is kept beside it.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from store.api import Durability
from tests.golden.stores import FOLDERS
from tests.simulation.crash import Aftermath, Crash
from tests.simulation.disk import Disk, Image, parent_of
from tests.simulation.history import SegmentState, observe
from tests.simulation.trace import ALL, ATTRIBUTES, KEY_LENGTHS, NAMES, TABLES_MOSTLY
from tests.simulation.world import World, small_compactions, small_holes

ARCHIVE: Final = FOLDERS[1] / "crashed.tar.xz"
STATES: Final = "states.json"
CRASHES: Final = 5
"""So many of each history; the last disk is that of a store that was closed."""


class Crashed(NamedTuple):
    """What is on a disk, and what version 1 found there."""

    name: str
    image: Image
    states: dict[str, SegmentState | None]


def crashed() -> list[Crashed]:
    """Unpack all of them."""
    files: dict[str, dict[str, bytes]] = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            name, _, path = member.name.partition("/")
            files.setdefault(name, {})[path] = content.read()
    found = []
    for name, held in files.items():
        states = json.loads(held.pop(STATES))
        found.append(
            Crashed(name, image_of(held), {key: _state(key, states[key]) for key in NAMES})
        )
    return found


def image_of(files: dict[str, bytes]) -> Image:
    """Make the image of a disk that holds these files."""
    names = {path: number for number, path in enumerate(files, 1)}
    contents = dict(enumerate(files.values(), 1))
    directories = {parent_of(path) for path in files if parent_of(path)}
    return Image(frozenset({"journal", "data", *directories}), names, contents)


def main() -> None:
    """Make all of them."""
    with (
        tarfile.open(ARCHIVE, "w:xz") as archive,
        tempfile.TemporaryDirectory() as temporary,
        small_compactions(),
        small_holes(),
    ):
        numbers = itertools.count(1)
        for durability, mix in itertools.product(Durability, (ALL, TABLES_MOSTLY)):
            world = World(durability, 1_000, Path(temporary))
            for kind, image in _crashes(world, random.Random(7), mix):
                rig = world.open(Disk(image))
                states = observe(rig, NAMES, ATTRIBUTES)
                rig.close()
                text = json.dumps({name: _words(state) for name, state in states.items()})
                files = {path: image.contents[inode] for path, inode in image.names.items()}
                name = f"{next(numbers):02}-{durability.value}-{kind}"
                for path, data in {**files, STATES: text.encode()}.items():
                    if path not in {"lock", "reserve"}:
                        member = tarfile.TarInfo(f"{name}/{path}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))


def _crashes(world: World, chance: random.Random, mix: Any) -> Iterator[tuple[str, Image]]:  # noqa: ANN401 - a Mix
    record, _ = world.run(400, mix)
    cuts = sorted(chance.sample(range(len(record) // 4, len(record)), CRASHES - 1))
    aftermath = Aftermath()
    done = 0
    for cut in [*cuts, len(record)]:
        for step in record[done:cut]:
            aftermath.advance(step, chance)
        done = cut
        torn = record[cut] if cut < len(record) else None
        crash = Crash.KILL if torn is None else chance.choice([*Crash])
        image, _ = aftermath.after(crash, chance, torn)
        yield "closed" if torn is None else crash.value.replace(" ", "-"), image


def _words(state: SegmentState | None) -> Any:  # noqa: ANN401 - JSON
    if state is None:
        return None
    return {
        "start": state.start,
        "is_sealed": state.is_sealed,
        "is_table": state.is_table,
        "content": state.content.hex(),
        "attributes": {str(key): value for key, value in state.attributes.items()},
        "entries": {
            key.hex(): [value.hex(), version] for key, (value, version) in state.entries.items()
        },
    }


def _state(name: str, words: Any) -> SegmentState | None:  # noqa: ANN401 - JSON
    if words is None:
        return None
    return SegmentState(
        words["start"],
        words["is_sealed"],
        words["is_table"],
        KEY_LENGTHS.get(name, 0),
        bytes.fromhex(words["content"]),
        {UUID(key): value for key, value in words["attributes"].items()},
        {
            bytes.fromhex(key): (bytes.fromhex(value), version)
            for key, (value, version) in words["entries"].items()
        },
    )


if __name__ == "__main__":
    main()
