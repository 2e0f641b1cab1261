"""Projections as they are described, and what each mode makes of events."""

from typing import Any

import bson
import pytest

from gateway.mewbase.binders.projection import Change, checked
from gateway.mewbase.binders.projections_file import projection_of
from gateway.mewbase.documents import NoDocument
from store.api import ENTRY_BYTES_MAX

BASE = {"name": "p", "channel": "c", "binder": "b", "id": "id"}


def fold(
    events: list[dict[str, Any]], change: Change | None = None, **more: str
) -> dict[str, dict[str, Any]]:
    """Return the documents that some events make."""
    projection = projection_of(BASE | more)
    made = projection.fold(change)
    found: dict[str, bytes] = {}
    for event in map(bson.encode, events):
        name = projection.id_of(event)
        found[name] = made(name, found.get(name), event)
    return {name: bson.decode(content) for name, content in found.items()}


def test_replace_takes_the_last_event() -> None:
    events: list[dict[str, Any]] = [{"id": "a", "n": 1, "m": 1}, {"id": "b"}, {"id": "a", "n": 2}]
    assert fold(events) == {"a": {"id": "a", "n": 2}, "b": {"id": "b"}}


def test_merge_takes_the_last_value_of_each_field() -> None:
    events: list[dict[str, Any]] = [
        {"id": "a", "n": 1, "o": {"x": 1}},
        {"id": "a", "m": 2, "o": {"y": 1}},
    ]
    assert fold(events, mode="merge") == {"a": {"id": "a", "n": 1, "o": {"y": 1}, "m": 2}}


def test_add_sums_up_by_a_path_of_fields() -> None:
    events = [
        {"customer": "tim", "product": "juice", "quantity": 1},
        {"customer": "tim", "product": "eggs.large", "quantity": 2},
        {"customer": "tim", "product": "juice", "quantity": 3},
        {"customer": "ann", "product": 7, "quantity": 0.5},
    ]
    found = fold(
        events, mode="add", id="customer", path="basket.{product}.count", quantity="quantity"
    )
    assert found == {
        "tim": {"id": "tim", "basket": {"juice": {"count": 4}, "eggs.large": {"count": 2}}},
        "ann": {"id": "ann", "basket": {"7": {"count": 0.5}}},
    }


def test_python_calls_a_function() -> None:
    def change(document: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
        return {"seen": [*(document or {"seen": []})["seen"], event["n"]]}

    events = [{"id": "a", "n": 1}, {"id": "a", "n": 2}]
    assert fold(events, change, mode="python", function="f") == {"a": {"seen": [1, 2]}}


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_a_function_that_raises_makes_no_document(raised: BaseException) -> None:
    def change(_document: object, _event: object) -> dict[str, Any]:
        raise raised

    with pytest.raises(NoDocument, match="the function raised"):
        fold([{"id": "a"}], change, mode="python", function="f")


@pytest.mark.parametrize(
    ("returned", "reason"), [(None, "returned None"), (7, "raised"), ({"a": {1}}, "raised")]
)
def test_a_function_that_returns_no_document_makes_none(returned: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(NoDocument, match=reason):
        fold([{"id": "a"}], lambda *_: returned, mode="python", function="f")


@pytest.mark.parametrize("event", [{}, {"id": None}, {"id": 1.5}, {"id": ""}, {"id": {"a": 1}}])
def test_an_event_needs_an_id(event: dict[str, Any]) -> None:
    with pytest.raises(NoDocument, match="no field 'id'"):
        fold([event])


@pytest.mark.parametrize(
    "event", [{"id": "a", "q": 1}, {"id": "a", "f": "x"}, {"id": "a", "f": "x\0", "q": 1}]
)
def test_an_amount_needs_its_fields(event: dict[str, Any]) -> None:
    with pytest.raises(NoDocument, match="no field"):
        fold([event], mode="add", path="n.{f}", quantity="q")


def test_an_id_may_be_deep_in_the_event() -> None:
    assert fold([{"order": {"id": 7}}], id="order.id") == {"7": {"order": {"id": 7}}}


def test_a_document_has_to_fit_its_row() -> None:
    def sized(size: int) -> bytes:
        around = len(bson.encode({"d": b""}))
        return bson.encode({"d": bytes(size - around)})

    assert checked("ab", sized(ENTRY_BYTES_MAX - 3))
    with pytest.raises(NoDocument, match="too much"):
        checked("ab", sized(ENTRY_BYTES_MAX - 2))


def test_a_document_has_to_be_within_the_depth() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(NoDocument, match="too deep"):
        checked("a", bson.encode(deep))
