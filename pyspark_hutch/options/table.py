"""The table of all options, and the names that are nearest to a wrong one."""

from difflib import get_close_matches
from typing import Final

from pyspark_hutch.options.option import Heading, Option, contents
from pyspark_hutch.options.read_settings import ReadSettings
from pyspark_hutch.options.write_settings import WriteSettings


def _groups() -> dict[str, list[Option]]:
    """Return the options of a read and then of a write by heading; what both have comes once."""
    groups: dict[str, list[Option]] = {}
    group: list[Option] = []
    found: set[str] = set()
    for entry in (*contents(ReadSettings), *contents(WriteSettings)):
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
"""Names of the same in Kafka's source and other connectors; lower case."""

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
