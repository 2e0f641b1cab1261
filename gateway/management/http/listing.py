"""Lists as RabbitMQ gives them: all, or a page; only some fields; by name or by a field.

Source: RabbitMQ, "Management HTTP API", Pagination Parameters; RabbitMQ 4.3 as observed.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, TypeVar

from starlette.responses import Response

from gateway.broker.patterns import Pattern, UnusablePattern, length_fault
from gateway.management.errors import WrongRequest
from gateway.management.http.answers import ApiRefusal, Listed, in_slices, sliced_answer
from gateway.management.http.call import ApiCall

T = TypeVar("T")
View = Callable[[T], Mapping[str, object]]
_Key = tuple[int, Any]
_Order = Callable[[Mapping[str, object]], _Key]
_Columns = Mapping[str, Any] | None

PAGE_SIZE_DEFAULT: Final = 100
PAGE_SIZE_MAX: Final = 500
_DEPTH_MAX: Final = 8
_OF_WHOLE_LISTS: Final = frozenset(("sort", "sort_reverse", "columns"))
_NUMBER: Final = re.compile("-?[0-9]{1,9}")


def object_answer(call: ApiCall, view: Mapping[str, object]) -> Response:
    """Answer with one object, of which the query may ask for some fields."""
    columns = _columns(call.query)
    return sliced_answer(view if columns is None else _narrowed(view, columns))


async def listed_whole(call: ApiCall, items: Iterable[T], view: View[T]) -> Response:
    """Answer with a list that RabbitMQ gives no pages of: whole, whatever page or name is asked.

    Args and errors are those of `listed`.
    """
    query = {name: text for name, text in call.query.items() if name in _OF_WHOLE_LISTS}
    return await listed(replace(call, query=query), items, view)


async def listed(call: ApiCall, items: Iterable[T], view: View[T]) -> Response:
    """Answer with a list, as the query asks for it.

    Args:
        call: With the query.
        items: What there is; nothing changes it meanwhile.
        view: Shows one.

    Raises:
        ApiRefusal: There are no such pages.
        WrongRequest: The pattern cannot be used, or a number is none.
    """
    query = call.query
    columns = _columns(query)
    is_whole = not ({"page", "sort", "name"} & query.keys())
    if is_whole:
        return sliced_answer(Listed(items, _narrow(view, columns)))
    page, size = _number(query, "page", 1), _number(query, "page_size", PAGE_SIZE_DEFAULT)
    if page < 1 or not 1 <= size <= PAGE_SIZE_MAX:
        reason = f"Invalid pagination parameters: page number {page}, page size {size}"
        raise ApiRefusal(HTTPStatus.BAD_REQUEST, "invalid_pagination_parameters", reason)
    if not {"sort", "name"} & query.keys():
        every = items if isinstance(items, list) else list(items)
        return _page(every, _narrow(view, columns), len(every), page, size)
    # Without a field all are alike, and stay in their order.
    order = _by(query.get("sort", ""))
    found, total_count = await _found(items, view, _matcher(query), order)
    found.sort(key=itemgetter(0), reverse=query.get("sort_reverse") == "true")
    narrow = _narrow(view, columns)
    if "page" not in query:
        return sliced_answer(Listed(found, lambda each: narrow(each[1])))
    return _page(found, lambda each: narrow(each[1]), total_count, page, size)


def _page(found: list[T], view: View[T], total_count: int, page: int, size: int) -> Response:
    if page > 1 and (page - 1) * size >= len(found):
        reason = f"Page out of range, page: {page} page size: {size}, len: {len(found)}"
        raise ApiRefusal(HTTPStatus.BAD_REQUEST, "page_out_of_range", reason)
    some = found[(page - 1) * size : page * size]
    answer = {
        "items": Listed(some, view),
        "item_count": len(some),
        "filtered_count": len(found),
        "total_count": total_count,
        "page": page,
        "page_count": -(-len(found) // size),
        "page_size": size,
    }
    return sliced_answer(answer)


async def _found(
    items: Iterable[T], view: View[T], matches: Callable[[str], bool], order: _Order
) -> tuple[list[tuple[_Key, T]], int]:
    """Return what matches, each behind what it is sorted by, and how many were looked at.

    What is shown of each is made again for the answer: ten thousand of them would be much to keep.
    """
    found = []
    count = 0
    async for item in in_slices(items):
        shown = view(item)
        if matches(str(shown.get("name", ""))):
            found.append((order(shown), item))
        count += 1
    await asyncio.sleep(0)
    return found, count


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if _NUMBER.fullmatch(text) is None:
        raise WrongRequest("Pagination parameters are invalid")
    return int(text)


def _matcher(query: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a check of wanted names: those that hold a text, or match a pattern."""
    wanted = query.get("name", "")
    if query.get("use_regex") != "true":
        return lambda name: wanted.lower() in name.lower()
    if fault := length_fault(wanted):
        raise WrongRequest(f"name {fault}")
    try:
        return Pattern(wanted).matches
    except UnusablePattern as error:
        raise WrongRequest(f"name {error}") from None


def _by(field: str) -> _Order:
    def key(one: Mapping[str, object]) -> _Key:
        value: object = one
        for part in field.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, int | float):
            return 0, value
        return (1, value) if isinstance(value, str) else (2, 0)

    return key


def _columns(query: Mapping[str, str]) -> _Columns:
    """Return which fields are wanted, each with those wanted within it; None is all of them."""
    names = [name for name in query.get("columns", "").split(",") if name]
    wanted: dict[str, Any] = {}
    for name in names:
        *outer, last = name.split(".", _DEPTH_MAX)
        within: Any = wanted
        for part in outer:
            within = within.setdefault(part, {})
            if within is None:  # all of it is wanted already
                break
        else:
            within[last] = None
    return wanted or None


def _narrow(view: View[T], columns: _Columns) -> View[T]:
    if columns is None:
        return view
    return lambda item: _narrowed(view(item), columns)


def _narrowed(shown: Mapping[str, object], columns: Mapping[str, Any]) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, within in columns.items():
        if name not in shown:
            continue
        value = shown[name]
        if within is None:
            result[name] = value
        elif isinstance(value, Mapping):
            result[name] = _narrowed(value, within)
        elif isinstance(value, Listed):
            result[name] = Listed(value.items, _narrow(value.view, within))
        elif isinstance(value, list):
            parts = [part for part in value if isinstance(part, Mapping)]
            result[name] = [_narrowed(part, within) for part in parts]
    return result
