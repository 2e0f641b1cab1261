"""The processes that Spark keeps and uses again, for tasks and for questions of the driver."""

import gc
import sys
from functools import cache
from typing import Final

_KEPT: Final = "pyspark.daemon"


def is_kept() -> bool:
    """Return whether Spark may use this process again."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", None) == _KEPT


@cache
def spare_collections() -> None:
    """Leave all that is loaded by now out of later collections, in a process that is kept.

    Spark has such a process collect its garbage after each use. To look through all modules costs
    more than to write a thousand rows. Garbage that is there by then stays, which is little.
    """
    if is_kept():
        gc.freeze()
