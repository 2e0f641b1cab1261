"""Tables: updates with conditions, removals, iteration, delta reads."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import CONTINUATION, Case, Closed, Kind, Step, ask, case, walk
from compat.pravega.requests import delta, entries_of, get, keys_of, remove, table_info, update
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import NO_KEY

MADE: Final = ask(r.create_table(), gives=m.SegmentCreated)
FIXED: Final = ask(r.create_table(key_length=2), gives=m.SegmentCreated)
INFO: Final = ask(table_info(), gives=t.TableSegmentInfo)
VERSION: Final = Kind.VERSION.nth
LENGTH: Final = Kind.LENGTH.nth
POSITION: Final = Kind.POSITION.nth
NEVER: Final = 123_456_789
"""A version that no key has."""


def updated(request: t.UpdateTableEntries) -> Step:
    """Return an update that is taken."""
    return ask(request, gives=t.TableEntriesUpdated)


def having(*keys: bytes) -> Step:
    """Return a step that gives keys a value each."""
    return updated(update(*((key, b"v" + key) for key in keys)))


def found(*keys: bytes) -> Step:
    """Return a look-up."""
    return ask(get(*keys), gives=t.TableRead)


def table(name: str, *steps: Step) -> Case:
    """Return a case on a table of keys of any length."""
    return case(f"table: {name}", MADE, *steps)


def fixed(name: str, *steps: Step) -> Case:
    """Return a case on a table of keys of two bytes."""
    return case(f"fixed keys: {name}", FIXED, *steps)


LIFE: Final = (
    table("made twice", ask(r.create_table(), gives=e.SegmentAlreadyExists)),
    table("its info", INFO, having(b"a", b"b"), INFO),
    fixed("its info", INFO, having(b"aa", b"bb"), INFO),
    case(
        "table: a negative key length",
        ask(r.create_table(key_length=-1), gives=m.SegmentCreated, label="negative"),
        ask(table_info(), gives=t.TableSegmentInfo, label="negative"),
    ),
    case("table: a key length of 8,193", ask(r.create_table(key_length=8193), gives=Closed)),
    case(
        "table: a key length of 256",
        ask(r.create_table(key_length=256), gives=m.SegmentCreated),
        INFO,
    ),
    case("table: a key length of 257", ask(r.create_table(key_length=257), gives=Closed)),
    table(
        "deleted",
        ask(r.delete_table(), gives=m.SegmentDeleted),
        ask(table_info(), gives=e.NoSuchSegment),
    ),
    table(
        "deleted with entries",
        having(b"a"),
        ask(r.delete_table(), gives=m.SegmentDeleted),
        ask(get(b"a"), gives=e.NoSuchSegment),
    ),
    table(
        "deleted if it is empty", ask(r.delete_table(must_be_empty=True), gives=m.SegmentDeleted)
    ),
    table(
        "deleted if it is empty, and it is not",
        having(b"a"),
        ask(r.delete_table(must_be_empty=True), gives=e.TableSegmentNotEmpty),
        found(b"a"),
    ),
    table(
        "deleted if it is empty, after a removal",
        having(b"a"),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        ask(r.delete_table(must_be_empty=True), gives=m.SegmentDeleted),
    ),
    fixed(
        "deleted if it is empty, and it is not",
        having(b"aa"),
        ask(
            r.delete_table(must_be_empty=True), gives=e.OperationUnsupported, label="must be empty"
        ),
    ),
)

UPDATES: Final = (
    table("an entry and its value", having(b"a"), found(b"a")),
    table("several entries at once", having(b"a", b"b", b"c"), found(b"c", b"a", b"x", b"b")),
    table("an entry again", having(b"a"), updated(update((b"a", b"new"))), found(b"a")),
    table("an empty value", updated(update((b"a", b""))), found(b"a")),
    table(
        "an empty key",
        ask(update((b"", b"v")), gives=t.TableEntriesUpdated, label="empty key"),
    ),
    table("no entries", ask(update(), gives=t.TableEntriesUpdated, label="none")),
    table(
        "one key twice in one update",
        ask(update((b"a", b"1"), (b"a", b"2")), gives=t.TableEntriesUpdated, label="twice"),
        found(b"a"),
    ),
    table("a new key that must be new", updated(update((b"a", b"1", NO_KEY))), found(b"a")),
    table(
        "an old key that must be new",
        having(b"a"),
        ask(update((b"a", b"2", NO_KEY)), gives=e.TableKeyBadVersion),
        found(b"a"),
    ),
    table(
        "the right version", having(b"a"), updated(update((b"a", b"2", VERSION(1)))), found(b"a")
    ),
    table(
        "an older version",
        having(b"a"),
        having(b"a"),
        ask(update((b"a", b"3", VERSION(1))), gives=e.TableKeyBadVersion),
        found(b"a"),
    ),
    table(
        "a version that never was",
        having(b"a"),
        ask(update((b"a", b"3", NEVER)), gives=e.TableKeyBadVersion),
    ),
    table(
        "a version of a missing key",
        ask(update((b"a", b"3", NEVER)), gives=e.TableKeyDoesNotExist),
        found(b"a"),
    ),
    table(
        "a version of a removed key",
        having(b"a"),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        ask(update((b"a", b"3", VERSION(1))), gives=e.TableKeyDoesNotExist, is_loose=True),
        found(b"a"),
    ),
    table(
        "a removed key that must be new",
        having(b"a"),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        updated(update((b"a", b"3", NO_KEY))),
        found(b"a"),
    ),
    table(
        "a condition that fails stops all",
        having(b"a"),
        ask(update((b"b", b"1", NO_KEY), (b"a", b"2", NEVER)), gives=e.TableKeyBadVersion),
        found(b"a", b"b"),
        INFO,
    ),
    table(
        "a condition that fails stops one without",
        having(b"a"),
        ask(update((b"b", b"1"), (b"a", b"2", NO_KEY)), gives=e.TableKeyBadVersion),
        found(b"a", b"b"),
    ),
    table(
        "conditions that all hold",
        having(b"a", b"b"),
        updated(update((b"a", b"1", VERSION(1)), (b"b", b"2", VERSION(2)), (b"c", b"3", NO_KEY))),
        found(b"a", b"b", b"c"),
    ),
    table(
        "two wrong conditions: missing, and bad",
        having(b"a"),
        ask(
            update((b"b", b"1", NEVER), (b"a", b"2", NO_KEY)),
            gives=e.TableKeyDoesNotExist,
            label="two",
        ),
    ),
    table(
        "two wrong conditions: bad, and missing",
        having(b"a"),
        ask(
            update((b"a", b"2", NO_KEY), (b"b", b"1", NEVER)),
            gives=e.TableKeyDoesNotExist,
            label="two",
        ),
    ),
    table("the right length", INFO, updated(update((b"a", b"1"), length=LENGTH(1))), found(b"a")),
    table(
        "another length",
        INFO,
        having(b"a"),
        ask(update((b"a", b"2"), length=LENGTH(1)), gives=e.SegmentIsTruncated),
        found(b"a"),
    ),
    table(
        "a length that never was",
        having(b"a"),
        ask(update((b"a", b"2"), length=NEVER), gives=e.SegmentIsTruncated),
    ),
    table(
        "a removal and the right length",
        having(b"a"),
        INFO,
        ask(remove(b"a", length=LENGTH(1)), gives=t.TableKeysRemoved),
        found(b"a"),
    ),
    table(
        "a removal and another length",
        INFO,
        having(b"a"),
        ask(remove(b"a", length=LENGTH(1)), gives=e.SegmentIsTruncated),
        found(b"a"),
    ),
    table("a key of 8 KiB", updated(update((b"k" * 8192, b"v"))), found(b"k" * 8192)),
    table("a key above 8 KiB", ask(update((b"k" * 8193, b"v")), gives=e.ErrorMessage)),
    table("an entry of 1,040,000 bytes", updated(update((b"k", b"v" * 1_039_999))), found(b"k")),
    table("an entry above 1 MiB", ask(update((b"k", b"v" * (1 << 20))), gives=e.ErrorMessage)),
    table(
        "a sealed one",
        having(b"a"),
        ask(r.seal(r.TABLE), gives=m.SegmentSealed),
        found(b"a"),
        ask(remove(b"a"), gives=e.SegmentIsSealed),
    ),
)

REMOVALS: Final = (
    table(
        "a key is removed",
        having(b"a", b"b"),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        found(b"a", b"b"),
        INFO,
    ),
    table("a missing key is removed", ask(remove(b"a"), gives=t.TableKeysRemoved), INFO),
    table("no key is removed", ask(remove(), gives=t.TableKeysRemoved, label="none")),
    table(
        "a removal with the right version",
        having(b"a"),
        ask(remove((b"a", VERSION(1))), gives=t.TableKeysRemoved),
        found(b"a"),
    ),
    table(
        "a removal with an older version",
        having(b"a"),
        having(b"a"),
        ask(remove((b"a", VERSION(1))), gives=e.TableKeyBadVersion),
        found(b"a"),
    ),
    table(
        "a removal of a missing key with a version",
        ask(remove((b"a", NEVER)), gives=e.TableKeyDoesNotExist),
    ),
    table(
        "a removal of a key that must not exist",
        ask(remove((b"a", NO_KEY)), gives=t.TableKeysRemoved, label="no key"),
    ),
    table(
        "a removal that fails removes none",
        having(b"a", b"b"),
        ask(remove((b"a", VERSION(1)), (b"b", NEVER)), gives=e.TableKeyBadVersion),
        found(b"a", b"b"),
    ),
    table("a look-up of nothing", ask(get(), gives=t.TableRead)),
    table("a look-up of one key twice", having(b"a"), found(b"a", b"a")),
    table("a look-up with a version", having(b"a"), ask(get((b"a", NEVER)), gives=t.TableRead)),
)

FIXED_KEYS: Final = (
    fixed("an entry and its value", having(b"aa"), found(b"aa", b"bb")),
    fixed(
        "a key of another length",
        ask(update((b"abc", b"v")), gives=e.ErrorMessage),
        ask(m.KeepAlive(), gives=m.KeepAlive),
    ),
    fixed("a look-up of another length", ask(get(b"abc"), gives=e.ErrorMessage)),
    fixed("a removal of another length", ask(remove(b"abc"), gives=e.ErrorMessage)),
    fixed(
        "a new key that must be new",
        updated(update((b"aa", b"1", NO_KEY))),
        ask(update((b"aa", b"2", NO_KEY)), gives=e.TableKeyBadVersion),
    ),
    fixed(
        "the right version", having(b"aa"), updated(update((b"aa", b"2", VERSION(1)))), found(b"aa")
    ),
    fixed(
        "another version",
        having(b"aa"),
        having(b"aa"),
        ask(update((b"aa", b"2", VERSION(1))), gives=e.TableKeyBadVersion),
    ),
    fixed(
        "a version of a missing key",
        ask(update((b"aa", b"2", NEVER)), gives=e.TableKeyBadVersion, label="missing"),
    ),
    fixed(
        "a removal",
        having(b"aa", b"bb"),
        ask(remove(b"aa"), gives=t.TableKeysRemoved),
        found(b"aa", b"bb"),
    ),
    fixed("keys in order", having(b"cc", b"aa", b"bb"), ask(keys_of(), gives=t.TableKeysRead)),
    fixed(
        "entries in order", having(b"cc", b"aa", b"bb"), ask(entries_of(), gives=t.TableEntriesRead)
    ),
    fixed(
        "keys, one at a time",
        having(b"cc", b"aa", b"bb"),
        ask(keys_of(1), gives=t.TableKeysRead, label="page"),
        ask(keys_of(1, CONTINUATION), gives=e.ErrorMessage, label="page"),
    ),
    fixed(
        "keys from one to another",
        having(b"aa", b"bb", b"cc", b"dd"),
        ask(keys_of(first=b"bb", last=b"cc"), gives=t.TableKeysRead),
    ),
    fixed(
        "entries from one on",
        having(b"aa", b"bb", b"cc", b"dd"),
        ask(entries_of(first=b"bc"), gives=t.TableEntriesRead),
    ),
    fixed(
        "entries up to one",
        having(b"aa", b"bb", b"cc", b"dd"),
        ask(entries_of(last=b"bc"), gives=t.TableEntriesRead),
    ),
    fixed(
        "keys of an empty range",
        having(b"aa", b"bb"),
        ask(keys_of(first=b"zz"), gives=t.TableKeysRead),
    ),
    fixed(
        "keys of a range the wrong way",
        having(b"aa", b"bb"),
        ask(keys_of(first=b"bb", last=b"aa"), gives=e.ErrorMessage),
    ),
    fixed(
        "keys are bytes without a sign",
        having(b"\xff\xff", b"\0\0", b"\x7f\0"),
        ask(keys_of(), gives=t.TableKeysRead),
    ),
    fixed("a delta", having(b"aa"), ask(delta(), gives=e.OperationUnsupported, label="delta")),
)

MANY: Final = tuple(b"key%03d" % number for number in range(40))
ITERATION: Final = (
    table("keys of an empty one", ask(keys_of(), gives=t.TableKeysRead)),
    table("entries of an empty one", ask(entries_of(), gives=t.TableEntriesRead)),
    table("keys at once", having(*MANY), walk(keys_of(1000))),
    table("keys, seven at a time", having(*MANY), walk(keys_of(7))),
    table("entries, seven at a time", having(*MANY), walk(entries_of(7))),
    table("entries, one at a time", having(*MANY[:5]), walk(entries_of(1))),
    table(
        "a removed key is not iterated",
        having(*MANY[:5]),
        ask(remove(MANY[2]), gives=t.TableKeysRemoved),
        walk(keys_of(2)),
    ),
    table("no keys are asked", having(b"a"), ask(keys_of(0), gives=t.TableKeysRead, label="none")),
    table(
        "a negative count of keys",
        having(b"a"),
        ask(keys_of(-1), gives=t.TableKeysRead, label="none"),
    ),
    table(
        "a mark of an iteration that never was",
        having(b"a"),
        ask(keys_of(5, b"\1\2\3"), gives=Closed, label="mark"),
    ),
)

DELTAS: Final = (
    table("a delta of an empty one", ask(delta(), gives=t.TableEntriesDeltaRead)),
    table(
        "a delta from the beginning",
        having(b"a"),
        having(b"b"),
        ask(delta(), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta from where the last one ended",
        having(b"a"),
        ask(delta(), gives=t.TableEntriesDeltaRead),
        having(b"b"),
        ask(delta(POSITION(1)), gives=t.TableEntriesDeltaRead),
        ask(delta(POSITION(2)), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta, two at a time",
        *(having(key) for key in MANY[:5]),
        ask(delta(0, 2), gives=t.TableEntriesDeltaRead),
        ask(delta(POSITION(1), 2), gives=t.TableEntriesDeltaRead),
        ask(delta(POSITION(2), 2), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta has the last of each key",
        having(b"a"),
        updated(update((b"a", b"new"))),
        ask(delta(), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta with a removal and its insert",
        having(b"a", b"b"),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        ask(delta(), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta with a removal alone",
        having(b"a", b"b"),
        ask(delta(), gives=t.TableEntriesDeltaRead),
        ask(remove(b"a"), gives=t.TableKeysRemoved),
        ask(delta(POSITION(1)), gives=t.TableEntriesDeltaRead),
    ),
    table(
        "a delta from beyond the end",
        having(b"a"),
        ask(delta(NEVER), gives=e.ErrorMessage, label="beyond"),
    ),
    table(
        "a delta from a negative position",
        having(b"a"),
        ask(delta(-1), gives=e.ErrorMessage, label="negative"),
    ),
    table(
        "a delta of no entries",
        having(b"a"),
        ask(delta(0, 0), gives=t.TableEntriesDeltaRead, label="none"),
    ),
)

CASES: Final = (*LIFE, *UPDATES, *REMOVALS, *FIXED_KEYS, *ITERATION, *DELTAS)
