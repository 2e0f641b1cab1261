"""Names of tables, and of their parts in the store.

    scope/name_kvtable/<number>.#epoch.0        a part of a table

No stream has such a name: one has an underscore at its beginning only.

Source: Pravega's rules for the names of users' tables (`[A-Za-z0-9.-]+`, at most 250 characters).
"""

from typing import Final

from gateway.pravega.access.tokens import TABLE_SUFFIX
from gateway.pravega.controller.names import is_name

NAME_LETTERS_MAX: Final = 250


def is_table_name(name: str) -> bool:
    """Return whether a table may have a name."""
    return len(name) <= NAME_LETTERS_MAX and is_name(name) and not name.startswith("_")


def stream_of(name: str) -> str:
    """Return the name that stands for a table where streams stand."""
    return name + TABLE_SUFFIX


def names_with_rights(name: str) -> tuple[str, str]:
    """Return the names whose rights count for a table, which is named by either of them."""
    table = name.removesuffix(TABLE_SUFFIX)
    return table, stream_of(table)
