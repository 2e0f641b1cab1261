"""Names of scopes, streams and their segments; numbers of segments.

    scope/stream/<number>.#epoch.<epoch>                              a segment
    scope/stream/<number>.#epoch.<epoch>#transaction.<32 hex>         a transaction's part of it

Source: Pravega's rules for names (`_?[A-Za-z0-9.-]+`, at most 255 characters). `.` and `..` are no
names here: the path of a token cannot have them.
"""

import re
from typing import Final

from store.api import TRANSACTION_MARK

TABLE: Final = "hutch/_controller_kvtable/0.#epoch.0"
"""The table of everything that the controller knows."""

_NAME: Final = re.compile(r"(?!\.{1,2}\Z)_?[A-Za-z0-9.-]{1,254}")
_OWN_SCOPE: Final = "hutch"


def is_name(name: str) -> bool:
    """Tell whether a stream may have a name."""
    return _NAME.fullmatch(name) is not None


def is_scope_name(name: str) -> bool:
    """Tell whether a scope of clients may have a name; the server's own is none of theirs."""
    return is_name(name) and name != _OWN_SCOPE


def segment_id(number: int, epoch: int) -> int:
    """Return a segment's number as clients write it."""
    return epoch << 32 | number


def segment_name(scope: str, stream: str, identity: int) -> str:
    """Return a segment's name in the store."""
    return f"{scope}/{stream}/{identity & 0xFFFFFFFF}.#epoch.{identity >> 32}"


def transaction_segment_name(scope: str, stream: str, identity: int, transaction: int) -> str:
    """Return the name of a transaction's part of a segment."""
    return f"{segment_name(scope, stream, identity)}{TRANSACTION_MARK}{transaction:032x}"
