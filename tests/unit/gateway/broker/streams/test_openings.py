"""The mark of a clean end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.broker.streams.openings import Openings
from store.api import Durability
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.log.log_rig import LogRig


def test_the_mark_is_on_the_disk_whatever_the_store_promises_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = LogRig(tmp_path, durability=Durability.OS)
    asked: list[object] = []

    def watch(update_table: Callable[..., None], *arguments: object, **options: object) -> None:
        asked.append(options.get("durability"))
        update_table(*arguments, **options)

    wrap_operation(monkeypatch, rig.store, "update_table", watch)
    openings = Openings(rig.store)
    rig.run(openings.begin())
    rig.run(openings.end())
    rig.close()

    assert asked == [Durability.DISK, Durability.DISK]
