from typing import Any, TypeVar

from typing_extensions import Buffer

_T = TypeVar("_T")

def keys(
    source: Buffer, position: int, count: int, make_key: type[_T]
) -> tuple[list[_T], int] | None: ...
def entries(
    source: Buffer, position: int, count: int, make_key: type[Any], make_entry: type[_T]
) -> tuple[list[_T], int] | None: ...
