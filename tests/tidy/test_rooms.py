"""Every module belongs to a room whose tests `make coverage` runs."""

from tests.coverage import ROOMS, modules, room_of
from tests.tidy.sources import ROOT


def test_every_module_belongs_to_a_room() -> None:
    assert {room_of(module).folder for module in modules()} == {room.folder for room in ROOMS}


def test_every_room_has_tests_of_its_own() -> None:
    folders = [path for room in ROOMS for path in room.tests if not path.startswith("--")]

    assert [path for path in folders if not (ROOT / path).exists()] == []
