"""Data directories of format version 1 with the histories of `history`, and what they hold.

    python -m tests.damage.older FOLDER

makes them anew with the store of the tree it runs in, so it was run on the last tree of version 1,
with this folder copied there (where nothing was set aside yet, so that `server` cannot ask for it).
Beside each directory lie the copies from earlier in its history, and what was acknowledged, as a
Python literal.
"""

from __future__ import annotations

import ast
import shutil
import sys
import tarfile
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from store.api import Durability
from tests.damage.history import VARIANTS, build
from tests.damage.ledger import Built, Ledger, Span, Stored

_FOLDER: Final = Path(__file__).parents[1] / "golden" / "version_1"
_LEDGER: Final = "ledger"
_DATA: Final = "data"


def unpack_older(folder: Path) -> list[Built]:
    """Unpack all of them below a folder."""
    return [_unpacked(archive, folder) for archive in sorted(_FOLDER.glob("damage-*.tar.xz"))]


def _unpacked(archive: Path, folder: Path) -> Built:
    name = archive.name.removeprefix("damage-").removesuffix(".tar.xz")
    directory = folder / f"1-{name}"
    with tarfile.open(archive) as opened:
        opened.extractall(directory, filter="data")
    words = ast.literal_eval((directory / _LEDGER).read_text())
    kinds = words.pop("kinds")
    ledger = Ledger(**words)
    for records in ledger.records.values():
        records.update({offset: Stored(*record) for offset, record in records.items()})
    ledger.spans = [(step, Span(*span)) for step, span in ledger.spans]
    older = sorted(path for path in directory.glob("*-opening") if path.is_dir())
    return Built(directory.name, directory / _DATA, older, ledger, kinds, version=1)


def main(folder: Path) -> None:
    """Make all of them."""
    from tests.damage.cases import small_parts  # noqa: PLC0415 - it unpacks what is made here

    for variant in VARIANTS:
        if variant.durability is Durability.INTERVAL:
            continue  # of version 1 it has nothing that the others have not
        with small_parts(), tempfile.TemporaryDirectory() as temporary:
            built = build(variant, Path(temporary))
            for left in Path(temporary).glob("*/reserve"):
                left.unlink()
            words = _plain({**asdict(built.ledger), "kinds": built.kinds})
            (Path(temporary) / _LEDGER).write_text(repr(words))
            shutil.rmtree(Path(temporary) / "killed", ignore_errors=True)
            with tarfile.open(folder / f"damage-{variant.name}.tar.xz", "w:xz") as archive:
                for path in sorted(Path(temporary).iterdir()):
                    archive.add(path, path.name)


def _plain(value: object) -> object:
    """Give a value with ordinary tuples, which a literal can have."""
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [*map(_plain, value)] if isinstance(value, list) else (*map(_plain, value),)
    return value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
