"""Names of a stream's segments, tables and keys in the segment store: pure functions.

    rmq-<host>/_<stream>-<generation>/0.#epoch.0          the chunks
    rmq-<host>/_<stream>-<generation>-index/0.#epoch.0    sparse index, derived
    rmq-<host>/_<stream>-<generation>-filters/0.#epoch.0  filter values of chunks, derived
    rmq-<host>/_MARK_<stream>-<generation>/0.#epoch.0     empty; a reader of Pravega's had it made
    rmq-<host>/_meta_kvtable/0.#epoch.0                   stream name → its description
    rmq-<host>/_tracking_kvtable/0.#epoch.0               generation, NUL, reference → offset;
                                                          the same of snapshots and begun readers
    rmq-<host>/_policies_kvtable/0.#epoch.0               policy name → policy
    rmq-<host>/_operator-policies_kvtable/0.#epoch.0      the same of operators' policies
    rmq-<host>/_commits_kvtable/0.#epoch.0                commits, their sinks and stages
    rmq-<host>/_..binder-<name>_kvtable/0.#epoch.0        documents that projections make
    rmq-<host>/_..stage-<number>/0.#epoch.0               chunks of a stage that is large
    rmq-<host>/_..unit-<number>-<generation>/0.#epoch.0   chunks of a commit that enter a stream
    hutch/_<what>_kvtable/0.#epoch.0                      tables that belong to no virtual host

In a virtual host's or stream's name every byte outside A-Z a-z 0-9 - is written `.hh`. If that is
longer than 200 characters, a hash replaces it. The underscore marks a stream as internal for
Pravega. Every creation takes a new generation, so no segment name is ever used twice.

Source: Pravega's rules for scope and stream names (`_?[A-Za-z0-9.-]+`, at most 255).
"""

import hashlib
import re
import string
import uuid
from functools import lru_cache
from typing import Final

_PLAIN: Final = frozenset((string.ascii_letters + string.digits + "-").encode())
_ESCAPED_MAX: Final = 200
_AS_IT_IS: Final = re.compile(f"[A-Za-z0-9-]{{0,{_ESCAPED_MAX}}}")
_SUFFIX: Final = "/0.#epoch.0"
_VIRTUAL_HOST: Final = "rmq-"


def escape(name: str) -> str:
    """Write `name` in Pravega's alphabet, at most 200 characters.

    >>> escape("/"), escape("orders-1"), escape("é")
    ('.2f', 'orders-1', '.c3.a9')
    """
    if _AS_IT_IS.fullmatch(name) is not None:  # most names; a list may have ten thousand
        return name
    raw = name.encode("utf-8", "surrogateescape")
    escaped = "".join(chr(byte) if byte in _PLAIN else f".{byte:02x}" for byte in raw)
    if len(escaped) <= _ESCAPED_MAX:
        return escaped
    return "..sha256-" + hashlib.sha256(raw).hexdigest()


@lru_cache(maxsize=256)
def scope_of(virtual_host: str) -> str:
    """Return the scope that holds everything of a virtual host."""
    return f"{_VIRTUAL_HOST}{escape(virtual_host)}"


def data_segment(virtual_host: str, stream: str, generation: int) -> str:
    """Return the segment of a stream's chunks."""
    return f"{pravega_name(virtual_host, stream, generation)}{_SUFFIX}"


def pravega_name(virtual_host: str, stream: str, generation: int) -> str:
    """Return the `scope/stream` by which Pravega's clients read a stream's chunks."""
    return f"{scope_of(virtual_host)}/_{escape(stream)}-{generation}"


def index_segment(virtual_host: str, stream: str, generation: int) -> str:
    """Return the segment of a stream's sparse index."""
    return f"{scope_of(virtual_host)}/_{escape(stream)}-{generation}-index{_SUFFIX}"


def filter_segment(virtual_host: str, stream: str, generation: int) -> str:
    """Return the segment of the filter values of a stream's chunks."""
    return f"{scope_of(virtual_host)}/_{escape(stream)}-{generation}-filters{_SUFFIX}"


def marks_segment(virtual_host: str, stream: str, generation: int) -> str:
    """Return the segment that Pravega's readers open beside the stream's chunks."""
    return f"{scope_of(virtual_host)}/_MARK_{escape(stream)}-{generation}{_SUFFIX}"


def meta_table(virtual_host: str) -> str:
    """Return the table of the streams of a virtual host."""
    return f"{scope_of(virtual_host)}/_meta_kvtable{_SUFFIX}"


def tracking_table(virtual_host: str) -> str:
    """Return the table of stored offsets and publisher sequences of a virtual host."""
    return f"{scope_of(virtual_host)}/_tracking_kvtable{_SUFFIX}"


def policy_table(virtual_host: str) -> str:
    """Return the table of the policies of a virtual host."""
    return f"{scope_of(virtual_host)}/_policies_kvtable{_SUFFIX}"


def operator_policy_table(virtual_host: str) -> str:
    """Return the table of a virtual host's operator policies, which override the others."""
    return f"{scope_of(virtual_host)}/_operator-policies_kvtable{_SUFFIX}"


def commits_table(virtual_host: str) -> str:
    """Return the table of a virtual host's commits, with their sinks and stages."""
    return f"{scope_of(virtual_host)}/_commits_kvtable{_SUFFIX}"


def binder_table(virtual_host: str, binder: str) -> str:
    """Return the table of a binder's documents; no stream's name is escaped to such a name."""
    return f"{scope_of(virtual_host)}/_..binder-{escape(binder)}_kvtable{_SUFFIX}"


def stage_segment(virtual_host: str, stage: int) -> str:
    """Return the segment of a large stage's chunks; no stream's name is escaped to such a name."""
    return f"{scope_of(virtual_host)}/_..stage-{stage}{_SUFFIX}"


def unit_segment(virtual_host: str, commit: int, generation: int) -> str:
    """Return the segment of a commit's chunks on their way into a stream."""
    return f"{scope_of(virtual_host)}/_..unit-{commit}-{generation}{_SUFFIX}"


def is_named_after(held: str, stream: str, generation: int) -> bool:
    """Return whether a stream of Pravega's sense holds a stream's chunks, index or filters."""
    own, _, what = held.rpartition("-")
    if what not in {"index", "filters"}:
        own = held
    return own.endswith(f"-{generation}") and own == f"_{escape(stream)}-{generation}"


def server_table(what: str) -> str:
    """Return a table that belongs to no virtual host: of users, of virtual hosts."""
    return f"hutch/_{what}_kvtable{_SUFFIX}"


def tracking_key(generation: int, reference: bytes) -> bytes:
    """Return the key of a consumer's stored offset."""
    return b"%d\x00%s" % (generation, reference)


def snapshot_key(generation: int, part: int) -> bytes:
    """Return the key of a part of a stream's snapshot; a byte of 1 tells it from references."""
    return b"%d\x01%d" % (generation, part)


def begun_key(generation: int, reference: bytes) -> bytes:
    """Return the key of the place where a durable reader began; it has a byte of 2."""
    return b"%d\x02%s" % (generation, reference)


_SERVER_SCOPE: Final = "hutch"
_OF_A_STREAM: Final = re.compile(
    r"_(?!\.\.(?:stage|unit)-)[A-Za-z0-9.-]+-[0-9]+(?:-index|-filters)?"
)


def is_server_scope(scope: str) -> bool:
    """Return whether a scope holds segments that belong to no virtual host."""
    return scope == _SERVER_SCOPE


def is_own(scope: str, stream: str) -> bool:
    """Return whether a stream of a scope, in Pravega's sense, is one that is named here."""
    is_inner = scope.startswith(_VIRTUAL_HOST) and stream.startswith("_")
    return is_inner or is_server_scope(scope)


def is_of_a_stream(scope: str, stream: str) -> bool:
    """Return whether it holds a stream's chunks, index or filters: no table, stage or unit."""
    return scope.startswith(_VIRTUAL_HOST) and _OF_A_STREAM.fullmatch(stream) is not None


_GENERATION: Final = re.compile(rb"([0-9]+)[\x00-\x02]")


def generation_of(key: bytes) -> int | None:
    """Return the generation that a tracking key belongs to, None if it is no tracking key."""
    match = _GENERATION.match(key)
    return None if match is None else int(match[1])


def writer_of(segment: str) -> uuid.UUID:
    """Return the one writer id under which every leader writes a segment."""
    return uuid.uuid5(uuid.NAMESPACE_URL, segment)
