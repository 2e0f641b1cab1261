import random

import pytest

from store.local.state import key_order
from store.local.state.key_order import KeyOrder, Ordering


def ordered(keys: list[bytes], *added: bytes) -> tuple[KeyOrder, int]:
    """Put keys in order; return the order and the number of turns that it took."""
    ordering = Ordering(keys)
    turns = 1
    while (order := ordering.go_on()) is None:
        turns += 1
        for key in added:
            ordering.add(key)
    return order, turns


def drawn(count: int, seed: int = 1) -> list[bytes]:
    chance = random.Random(seed)
    return list({chance.randbytes(chance.randint(1, 6)) for _ in range(count)})


@pytest.mark.parametrize("count", [0, 1, 4_000, 30_000])
def test_keys_are_in_order_from_any_key_on(count: int) -> None:
    keys = drawn(count)
    order, turns = ordered(keys, b"added", b"")
    wanted = sorted({*keys, b"added", b""} if turns > 1 else keys)

    assert len(order) == len(wanted)
    assert list(order.keys_from(b"", is_after=False)) == wanted
    for start in [*drawn(20, seed=2), *wanted[:3], *wanted[-3:], b"\xff" * 9]:
        after = [key for key in wanted if key > start]
        assert list(order.keys_from(start, is_after=True)) == after
        kept = [start, *after] if start in wanted else after
        assert list(order.keys_from(start, is_after=False)) == kept


def test_added_keys_are_in_order_once_and_blocks_stay_small() -> None:
    keys = drawn(20_000)
    order, _ = ordered(keys[:10])
    for key in keys + keys[:100]:
        order.add(key)

    assert list(order.keys_from(b"", is_after=False)) == sorted(keys)
    assert len(order) == len(keys)
    assert max(map(len, order._blocks)) <= key_order._BLOCK_MAX


@pytest.mark.parametrize("is_sorted", [True, False])
def test_many_keys_are_put_in_order_a_few_in_each_turn(
    monkeypatch: pytest.MonkeyPatch, *, is_sorted: bool
) -> None:
    monkeypatch.setattr(key_order, "_AT_ONCE", 500)
    keys = drawn(20_000)
    order, turns = ordered(sorted(keys) if is_sorted else keys)

    assert turns >= len(keys) // 500
    assert max(map(len, order._blocks)) <= key_order._BLOCK_MAX
