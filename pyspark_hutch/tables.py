"""Tables of a catalog, whose options Spark keeps to itself.

Seen on 4.3: `CREATE TABLE … USING hutch` asks for the schema with all that was said, among it
`provider` and `option.…`. A query of the table then gives the reader or writer none of it.
"""

from collections.abc import Mapping
from typing import Final

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.table import OPTIONS, SPARKS_PREFIX, is_sparks_own

_WAYS: Final = (
    "a catalog table's options do not reach a Python source in Spark 4.x: use "
    "CREATE TEMPORARY VIEW … USING hutch OPTIONS (…), SELECT … FROM t WITH (…), or "
    "spark.read.options(…).table(t)"
)
_PROVIDER: Final = "provider"


def is_bare_table(options: Mapping[str, str]) -> bool:
    """Return whether a table is made without options of ours, which a query may give it then.

    Raises:
        WrongOption: It is made with some, which would be lost.
    """
    names = {name.lower() for name in options}
    if _PROVIDER not in names:
        return False
    if any(name.startswith(SPARKS_PREFIX) or name in OPTIONS for name in names):
        raise WrongOption(_WAYS)
    return True


def require_options(options: Mapping[str, str]) -> None:
    """Refuse a read or write that got no option at all, as that of a table does."""
    if all(is_sparks_own(name.lower()) for name in options):
        raise WrongOption(f"no option has come with this query; {_WAYS}")
