"""The mark of a clean end."""

from pathlib import Path

import pytest

from gateway.broker.openings import Openings
from store.api import Durability
from tests.unit.gateway.log.log_rig import LogRig


def test_the_mark_is_on_the_disk_whatever_the_store_promises_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = LogRig(tmp_path, durability=Durability.OS)
    asked: list[object] = []
    update_table = rig.store.update_table

    def watch(*arguments: object, **options: object) -> None:
        asked.append(options.get("durability"))
        update_table(*arguments, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(rig.store, "update_table", watch)
    openings = Openings(rig.store)
    rig.run(openings.begin())
    rig.run(openings.end())
    rig.close()

    assert asked == [Durability.DISK, Durability.DISK]
