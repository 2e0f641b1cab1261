"""Hypothesis strategies for messages of Pravega's protocol, made from their fields' wire types."""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from hutch.pravega import wire_types as w
from hutch.pravega.commands import CommandCode
from hutch.pravega.layout import PayloadLayout, WireMessage, layout_of

BITS: Final = {"b": 8, "i": 32, "q": 64}
SHORT: Final = 40

data = st.binary(max_size=SHORT)
# Without lone surrogates, which no string has.
texts = st.text(max_size=SHORT)


def values_of(wire_type: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  any wire type
    """Return a strategy for the values that a wire type can carry."""
    return STRATEGIES[type(wire_type)](wire_type)


def integers_of(bits: int) -> st.SearchStrategy[int]:
    """Return a strategy for signed integers."""
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def numbers_of(wire_type: w.Number[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the numbers of a fixed type."""
    return st.booleans() if wire_type.code == "?" else integers_of(BITS[wire_type.code])


def fields_of(layout: PayloadLayout[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the messages of a layout."""
    return st.builds(layout.make, **{name: values_of(wire) for name, wire in layout.fields})


def messages_of(command: CommandCode) -> st.SearchStrategy[WireMessage]:
    """Return a strategy for the messages of a command."""
    return fields_of(layout_of(command.message))


keys = st.builds(w.TableKey, st.binary(min_size=1, max_size=SHORT), integers_of(64)) | st.just(
    w.TableKey(b"")
)

STRATEGIES: Final[dict[type[Any], Callable[[Any], st.SearchStrategy[Any]]]] = {
    w.Number: numbers_of,
    w.JavaString: lambda _: texts,
    w.Uuid: lambda _: st.uuids(),
    w.SizedBytes: lambda _: data,
    w.PayloadRest: lambda _: data,
    w.StoredEvent: lambda _: data,
    w.Key: lambda _: keys,
    w.Value: lambda _: data,
    w.EntryType: lambda _: st.builds(w.KeyAndValue, keys, data),
    w.Items: lambda wire: st.lists(values_of(wire.item), max_size=5).map(tuple),
    PayloadLayout: fields_of,
}
