"""The key of tokens: a file of the data directory, and in a cluster a row that all members have."""

from pathlib import Path
from typing import Final

from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from gateway.pravega.access.token_key import made_key, put_key
from gateway.serving.served_store import ServedStore

_TABLE: Final = server_table("keys")
_ROW: Final = b"tokens"


async def token_key(served: ServedStore, directory: Path) -> bytes:
    """Return the key, made at the first call.

    A member's file is taken over once, and says from then on what the row has: a token of one
    member is good at all.

    Raises:
        ConfigError: The file cannot be read or written, or holds no key.
        StoreError: The row cannot be read or written.
    """
    if served.cluster is None:
        return made_key(directory)
    kept = KeptTable(served.store, _TABLE)
    key = (await kept.load()).get(_ROW)
    if key is None:
        key = made_key(directory)
        await kept.write({_ROW: key})
    else:
        put_key(directory, key)
    return key
