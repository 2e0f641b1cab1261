"""The table of all options: the nearest name to a wrong one, and the options that are Spark's own.

Spark keeps the options of a table in a catalog to itself. Seen on 4.3: `CREATE TABLE … USING hutch`
asks for the schema with all that was said, among it `provider` and `option.…`. A query of the table
then gives the reader or writer none of it.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.option import Heading, Option, contents
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.options.write_settings import StreamWriteSettings


def _groups() -> dict[str, list[Option]]:
    """Return the options of a read and then of a write by heading; shared ones come once."""
    groups: dict[str, list[Option]] = {}
    group: list[Option] = []
    found: set[str] = set()
    for entry in (*contents(ReadSettings), *contents(StreamWriteSettings)):
        if isinstance(entry, Heading):
            group = groups.setdefault(entry.title, [])
        elif entry.name not in found:
            found.add(entry.name)
            group.append(entry)
    return groups


TABLE: Final = _groups()
"""All options by heading, in the order of the page."""

OPTIONS: Final[dict[str, Option]] = {
    option.name.lower(): option for group in TABLE.values() for option in group
}
"""All options by their names in lower case, which is how Spark hands them over."""

CLIENT_PREFIX: Final = "client."

SPARKS_OWN: Final = frozenset(
    (
        "path",  # load("…"), save("…") and tables
        "paths",  # load([…])
        "checkpointlocation",  # writeStream.option
        "queryname",  # writeStream.queryName
        "provider",  # what follows, of a table in a catalog
        "owner",
        "comment",
        "location",
        "collation",
        "external",
        "is_managed_location",
    )
)
"""Names that Spark adds itself, or leaves among the options that it hands over."""

SPARKS_PREFIX: Final = "option."  # of the options of a table in a catalog

_NAMES_ELSEWHERE: Final = {
    "kafka.bootstrap.servers": "endpoints",
    "bootstrap.servers": "endpoints",
    "host": "endpoints",
    "port": "endpoints",
    "user": "username",
    "subscribe": "stream",
    "subscribepattern": "streamPattern",
    "topic": "stream",
    "queue": "stream",
    "includeheaders": "includeProperties",
    "groupidprefix": "consumerName",
    "kafka.group.id": "consumerName",
    "kafkaconsumer.polltimeoutms": "pollTimeoutMs",
    "fetchoffset.numretries": "planner.retries",
    "fetchoffset.retryintervalms": "planner.retryIntervalMs",
    "mode": "delivery",
    "ssl": "tls",
}
"""Names that Kafka's source and other connectors have for an option; lower case."""

_CUTOFF: Final = 0.6  # how alike two names must be, of 1


def is_sparks_own(name: str) -> bool:
    """Return whether a name in lower case is not meant for us."""
    return name in SPARKS_OWN or name.startswith(SPARKS_PREFIX)


def nearest(name: str) -> str | None:
    """Return the option that was most likely meant by a name in lower case."""
    if name in _NAMES_ELSEWHERE:
        return _NAMES_ELSEWHERE[name]
    close = get_close_matches(name, OPTIONS, n=1, cutoff=_CUTOFF)
    return OPTIONS[close[0]].name if close else None


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
