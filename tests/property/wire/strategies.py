"""Hypothesis strategies for messages, made from the wire types of their fields."""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from hutch.stream import pipeline, wire_types
from hutch.stream.commands import Command, Sender
from hutch.stream.layout import FrameLayout, layout_of
from hutch.stream.messages import Message
from hutch.stream.offsets import OffsetSpec, OffsetType

BITS: Final = {"B": 8, "h": 16, "H": 16, "I": 32, "Q": 64, "q": 64}
SHORT: Final = 40

# Names are any bytes, UTF-8 or not.
names = st.one_of(
    st.text(max_size=SHORT),
    st.binary(max_size=SHORT).map(lambda data: data.decode("utf-8", "surrogateescape")),
)

signed_64 = st.integers(-(2**63), 2**63 - 1)


def values_of(wire_type: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  any wire type
    """Return a strategy for the values that a wire type can carry."""
    return STRATEGIES[type(wire_type)](wire_type)


def numbers_of(wire_type: wire_types.FixedNumber[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the numbers of a fixed type."""
    if wire_type.code == "?":
        return st.booleans()
    bits = BITS[wire_type.code]
    is_signed = wire_type.code.islower()
    return (
        st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if is_signed
        else st.integers(0, 2**bits - 1)
    )


def lists_of(wire_type: wire_types.Counted[Any] | wire_types.Rest[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for short lists of a type's items."""
    return st.lists(values_of(wire_type.item), max_size=5).map(tuple)


def offsets_of(offset_type: OffsetType) -> st.SearchStrategy[OffsetSpec]:
    """Return a strategy for the offset specifications of one type."""
    number_type = wire_types.OFFSET_NUMBERS.get(offset_type)
    numbers = st.just(0) if number_type is None else values_of(number_type)
    return numbers.map(lambda value: OffsetSpec(offset_type, value))


def messages_of(layout: FrameLayout[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the messages of a layout."""
    return st.builds(layout.make, **{name: values_of(wire) for name, wire in layout.fields})


STRATEGIES: Final[dict[type[Any], Callable[[Any], st.SearchStrategy[Any]]]] = {
    wire_types.FixedNumber: numbers_of,
    wire_types.String: lambda _: names,
    wire_types.NullableString: lambda _: st.none() | names,
    wire_types.ShortBytes: lambda _: st.binary(max_size=SHORT),
    wire_types.Remainder: lambda _: st.binary(max_size=SHORT),
    wire_types.Bytes: lambda _: st.binary(max_size=SHORT),
    wire_types.NullableBytes: lambda _: st.none() | st.binary(max_size=SHORT),
    wire_types.Counted: lists_of,
    wire_types.Rest: lists_of,
    wire_types.StringMap: lambda _: st.dictionaries(names, names, max_size=5),
    wire_types.NumberMap: lambda _: st.dictionaries(names, signed_64, max_size=5),
    wire_types.Trailing: lambda wire: values_of(wire.inner),
    wire_types.Offset: lambda wire: (
        st.sampled_from(OffsetType).filter(lambda kind: kind in wire.legal).flatmap(offsets_of)
    ),
    wire_types.PlainOffset: lambda _: st.integers(0, 2**64 - 1),
    FrameLayout: messages_of,
}


def requests_of(command: Command) -> st.SearchStrategy[tuple[int, Message]]:
    """Return a strategy for (version, message) of a command."""
    versions = [
        st.tuples(st.just(version), messages_of(layout_of(request)))
        for version, request in enumerate(command.requests, start=1)
    ]
    return st.one_of(versions)


def correlation_ids_of(command: Command) -> st.SearchStrategy[int | None]:
    """Return a strategy for correlation ids, or None for a command without."""
    return st.integers(0, 2**32 - 1) if command.is_correlated else st.none()


def heads_of(side: Sender) -> list[bytes]:
    """List key and version of every frame that one side may send."""
    other = Sender.BOTH & ~side
    requests = [
        command.key.to_bytes(2) + version.to_bytes(2)
        for command in pipeline.TABLE.commands
        if side in command.sender
        for version in range(1, command.version_max + 1)
    ]
    answers = [
        (command.key | 0x8000).to_bytes(2) + b"\0\1"
        for command in pipeline.TABLE.commands
        if other in command.sender and command.reply is not None
    ]
    return requests + answers
