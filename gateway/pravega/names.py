"""Names of scopes, streams, tables and their segments; numbers of segments.

    scope/stream/<number>.#epoch.<epoch>                              a segment
    scope/stream/<number>.#epoch.<epoch>#transaction.<32 hex>         a transaction's part of it
    scope/_RG<group>/<number>.#epoch.0                                what a group of readers agreed
    scope/_MARK<stream>/<number>.#epoch.0                             marks of a stream's times
    scope/name_kvtable/<number>.#epoch.0                              a part of a table

No stream has a name of the last kind: one has an underscore at its beginning only.

Source: Pravega's rules for names (`_?[A-Za-z0-9.-]+`, at most 255 characters) and for those of
users' tables (`[A-Za-z0-9.-]+`, at most 250). `.` and `..` are no names here: the path of a token
cannot have them.
"""

import re
from typing import Final

from store.api import TRANSACTION_MARK

TABLE: Final = "hutch/_controller_kvtable/0.#epoch.0"
"""The table of everything that the controller knows."""

MARK: Final = "_MARK"
"""Begins the name of the stream in which the server marks the times of another one."""
GROUP: Final = "_RG"
"""Begins the name of the stream in which a group of readers agrees."""
GROUP_LETTERS_MAX: Final = 251
TABLE_SUFFIX: Final = "_kvtable"
"""Stands behind the name of a table where streams stand."""
TABLE_LETTERS_MAX: Final = 250

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)_?[A-Za-z0-9.-]{1,255}")
_SEGMENT: Final = re.compile(r"([^/]+)/([^/]+)/([0-9]{1,10})\.#epoch\.([0-9]{1,10})")
_LETTERS_MAX: Final = 255
_OWN_SCOPE: Final = "hutch"


def is_name(name: str) -> bool:
    """Return whether a stream may have a name."""
    return len(name) <= _LETTERS_MAX and _NAME.fullmatch(name) is not None


def is_group_name(name: str) -> bool:
    """Return whether a group of readers may have a name: it begins with no `_`."""
    return is_name(name) and name[0] != "_" and len(name) <= GROUP_LETTERS_MAX


def marked(name: str) -> str | None:
    """Return the stream whose marks a stream of this name holds; None if it holds none."""
    return name.removeprefix(MARK) if name.startswith(MARK) else None


def is_scope_name(name: str) -> bool:
    """Return whether a scope of clients may have a name; the server's own is none of theirs."""
    return is_name(name) and name != _OWN_SCOPE


def segment_id(number: int, epoch: int) -> int:
    """Return a segment's number as clients write it."""
    return epoch << 32 | number


def segment_name(scope: str, stream: str, identity: int) -> str:
    """Return a segment's name in the store."""
    return f"{scope}/{stream}/{identity & 0xFFFFFFFF}.#epoch.{identity >> 32}"


def place_of(segment: str) -> tuple[str, str, int] | None:
    """Return scope, stream and identity of a segment; None if the name is none of a stream's."""
    found = _SEGMENT.fullmatch(segment)
    if found is None:
        return None
    return found[1], found[2], segment_id(int(found[3]), int(found[4]))


def transaction_segment_name(scope: str, stream: str, identity: int, transaction: int) -> str:
    """Return the name of a transaction's part of a segment."""
    return f"{segment_name(scope, stream, identity)}{TRANSACTION_MARK}{transaction:032x}"


def is_table_name(name: str) -> bool:
    """Return whether a table may have a name."""
    return len(name) <= TABLE_LETTERS_MAX and is_name(name) and not name.startswith("_")


def stream_of(name: str) -> str:
    """Return the name that stands for a table where streams stand."""
    return name + TABLE_SUFFIX


def names_with_rights(name: str) -> tuple[str, str]:
    """Return the names whose rights count for a table, which is named by either of them."""
    table = name.removesuffix(TABLE_SUFFIX)
    return table, stream_of(table)
