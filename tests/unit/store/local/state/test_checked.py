"""Bytes that were checked last, and which of them are let go."""

from store.api import CHECKED_BYTES_KEPT, CHECKS_KEPT
from store.local.state.checked import Checked
from store.local.state.data_file import DataFile
from store.local.state.segment import Place

FILE, OTHER = DataFile(1, 1), DataFile(2, 1)


def test_bytes_are_found_from_any_of_them_on() -> None:
    checked = Checked()
    checked.keep([Place(FILE, 100, 10)], memoryview(b"0123456789"))

    assert checked.find(Place(FILE, 100, 10)) == b"0123456789"
    assert checked.find(Place(FILE, 103, 4)) == b"3456"
    assert checked.find(Place(FILE, 109, 50)) == b"9"


def test_nothing_is_found_before_and_behind_them_and_in_another_file() -> None:
    checked = Checked()
    checked.keep([Place(FILE, 100, 10)], memoryview(b"0123456789"))

    assert checked.find(Place(FILE, 99, 10)) is None
    assert checked.find(Place(FILE, 110, 10)) is None
    assert checked.find(Place(OTHER, 100, 10)) is None


def test_bytes_of_several_files_are_found_in_each() -> None:
    checked = Checked()
    checked.keep([Place(FILE, 100, 4), Place(OTHER, 0, 6)], memoryview(b"0123456789"))

    assert checked.find(Place(FILE, 102, 8)) == b"23"
    assert checked.find(Place(OTHER, 1, 3)) == b"567"


def test_the_oldest_are_let_go_when_those_behind_them_are_enough() -> None:
    checked = Checked()
    quarter = CHECKED_BYTES_KEPT // 4
    places = [Place(FILE, number * quarter, quarter) for number in range(6)]
    data = bytes(quarter)

    for place in places[:4]:
        checked.keep([place], memoryview(data))
    assert None not in map(checked.find, places[:4])
    checked.keep([places[4]], memoryview(data))
    assert [checked.find(place) is not None for place in places[:5]] == [False, *[True] * 4]


def test_small_ones_are_let_go_by_their_number() -> None:
    checked = Checked()
    places = [Place(FILE, number, 1) for number in range(CHECKS_KEPT + 1)]

    for place in places:
        checked.keep([place], memoryview(b"x"))

    found = [checked.find(place) is not None for place in places]
    assert found == [False, *[True] * CHECKS_KEPT]


def test_one_that_is_larger_than_all_that_is_kept_is_kept_alone() -> None:
    checked = Checked()
    checked.keep([Place(OTHER, 0, 1)], memoryview(b"x"))
    large = Place(FILE, 0, CHECKED_BYTES_KEPT + 1)

    checked.keep([large], memoryview(bytes(large.size)))

    assert checked.find(Place(OTHER, 0, 1)) is None
    assert checked.find(large) == bytes(large.size)


def test_a_buffer_of_a_piece_is_used_again_once_it_is_let_go_or_given_back() -> None:
    checked = Checked()
    size = 8 * 1024 * 1024
    first = checked.room(size)
    assert len(first) == size
    checked.give_back(first)
    again = checked.room(size - 100)
    assert again.obj is first.obj
    assert len(again) == size - 100

    checked.keep([Place(FILE, 0, size)], again)
    assert checked.room(size).obj is not first.obj
    checked.keep([Place(FILE, size, CHECKED_BYTES_KEPT)], checked.room(CHECKED_BYTES_KEPT))
    assert checked.room(size).obj is first.obj


def test_few_buffers_are_spare_and_none_of_another_size() -> None:
    checked = Checked()
    size = 8 * 1024 * 1024
    rooms = [checked.room(size) for _ in range(4)]
    for room in [*rooms, checked.room(10), checked.room(size + 1)]:
        checked.give_back(room)

    again = {id(checked.room(size).obj) for _ in range(4)}
    assert len(again & {id(room.obj) for room in rooms}) == 2
