"""Rights: every command with every set of them, and the names that a pattern matches."""

from __future__ import annotations

from itertools import combinations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    add_user,
    administer,
    allow,
    ask,
    judged,
    opened,
    script,
    silence,
    tell,
)

RIGHTS = ("configure", "write", "read")
NOTHING = "^$"
NAMES = ("", "a", "ab", "aab", "b", "A B", "K", "a\n", "a\nb", "\x0b", "\x01", "a{,3}b", "é")


def member(letter: str = "A", **patterns: str) -> tuple[Step, ...]:
    """Return the steps that make a user with these patterns and connect as that user."""
    return add_user("~u"), allow("~u", **patterns), opened(letter, user="~u")


def commands(stream: str) -> tuple[Step, ...]:
    """Return every command that asks for a right on a stream, the harmless ones first."""
    return (
        ask("A", f.metadata(stream), label="metadata"),
        ask("A", f.declare(1, stream), label="declare"),
        ask("A", f.declare(2, stream, "r" * 256), label="declare with a long reference"),
        ask("A", f.query_sequence("r", stream), label="query sequence"),
        ask("A", f.subscribe(1, stream), label="subscribe"),
        ask("A", f.subscribe(2, stream, pairs={"name": "n" * 256}), label="long name"),
        ask("A", f.query_offset("r", stream), label="query offset"),
        ask("A", f.stream_stats(stream), label="statistics"),
        ask("A", f.resolve(stream, f.FIRST), label="resolve"),
        ask("A", f.route("k", stream), label="route"),
        ask("A", f.partitions(stream), label="partitions"),
        ask("A", f.create(stream), label="create"),
        ask("A", f.create_super(stream, [f"{stream}-0"], ["0"]), label="create super stream"),
        ask("A", f.delete_super(stream), label="delete super stream"),
        ask("A", f.delete(stream), label="delete"),
    )


def with_rights(rights: tuple[str, ...], stream: str, what: str) -> Script:
    """Return a script in which a user with these rights tries everything on a stream."""
    words = " and ".join(rights) or "nothing"
    patterns = {right: ".*" if right in rights else NOTHING for right in RIGHTS}
    return script(
        f"rights: {words}, on {what}",
        opened("G"),
        ask("G", f.create("~s")),
        *member(**patterns),
        *commands(stream),
    )


EVERY_SET = tuple(chosen for size in range(4) for chosen in combinations(RIGHTS, size))
MATRIX = tuple(
    with_rights(rights, stream, what)
    for rights in EVERY_SET
    for stream, what in (("~s", "a stream"), ("~none", "a stream that is not there"))
)

ON_A_SUPER_STREAM = tuple(
    script(
        f"rights: {' and '.join(rights) or 'nothing'}, on a super stream",
        opened("G"),
        ask("G", f.create_super("~t", ["~t-0", "~t-1"], ["0", "1"])),
        *member(**{right: ".*" if right in rights else NOTHING for right in RIGHTS}),
        ask("A", f.route("0", "~t"), label="route"),
        ask("A", f.route("nowhere", "~t"), label="route to nothing"),
        ask("A", f.partitions("~t"), label="partitions"),
        ask("A", f.delete_super("~t"), label="delete super stream"),
    )
    for rights in EVERY_SET
)


def partly(name: str, *steps: Step, **patterns: str) -> Script:
    """Return a script with a super stream of which a user may use a part."""
    return script(
        f"rights on a part of a super stream: {name}",
        opened("G"),
        ask("G", f.create_super("~t", ["~t-0", "~t-1"], ["0", "1"])),
        *member(**{right: patterns.get(right, ".*") for right in RIGHTS}),
        *steps,
    )


PARTS = (
    partly(
        "no right to write to the second partition",
        ask("A", f.route("0", "~t")),
        ask("A", f.route("1", "~t")),
        ask("A", f.partitions("~t")),
        ask("A", f.delete_super("~t")),
        write="^~t(-0)?$",
    ),
    partly(
        "neither to read nor to write the second partition",
        ask("A", f.partitions("~t")),
        ask("A", f.metadata("~t-0", "~t-1")),
        write="^~t(-0)?$",
        read="^~t(-0)?$",
    ),
    partly(
        "not the super stream itself",
        ask("A", f.route("0", "~t")),
        ask("A", f.partitions("~t")),
        ask("A", f.delete_super("~t")),
        configure="-[01]$",
        write="-[01]$",
        read="-[01]$",
    ),
    partly(
        "no right to configure the second partition",
        ask("A", f.delete_super("~t")),
        ask("A", f.create_super("~t2", ["~t-0x", "~t-1"], ["0", "1"])),
        configure="^~t(2|-0)?",
    ),
    partly(
        "one to be created, without the right to read it",
        ask("A", f.create_super("~x", ["~x-0"], ["0"])),
        read="^~t",
    ),
    partly(
        "one to be created, without the right to write to a partition",
        ask("A", f.create_super("~x", ["~x-0", "~x-1"], ["0", "1"])),
        write="^~x(-0)?$",
    ),
)

DEFAULT_EXCHANGE = tuple(
    script(
        f"rights on the default exchange: {right} on {pattern}",
        opened("G"),
        ask("G", f.create("~-q")),
        *member(**{each: pattern if each == right else NOTHING for each in RIGHTS}),
        ask("A", f.route("~-q", ""), label="route"),
        ask("A", f.route("~-none", ""), label="route to nothing"),
        *(ask("A", f.partitions(""), label="partitions") for _ in range(is_alone)),
    )
    for right in ("write", "read")
    for pattern, is_alone in (
        # Where other streams would tell, partitions are not asked for.
        (r"^amq\.default$|^~-q$", False),
        (r"^amq\.default$", True),
        ("^(|~-q)$", True),
        ("^$", True),
        (".*", False),
    )
)

PATTERNS = tuple(
    script(
        f"pattern: {what}",
        *member(configure=pattern),
        *(ask("A", f.create(name), label=name) for name in names),
    )
    for what, pattern, names in (
        ("an empty one", "", ("~a", "")),
        ("of nothing", NOTHING, ("~a", "")),
        # Letters that the run, which is hexadecimal, cannot have.
        ("found in the middle", "y", ("~-xyz", "~-xxz")),
        ("found at the beginning", "^~-b", ("~-b", "~-ab")),
        ("found at the end", "b$", ("~-b", "~-bc")),
        ("for the whole name", "^~-(a|b)[0-9]*$", ("~-a", "~-b17", "~-c", "~-a1x")),
        ("without regard to case", "(?i)^~-ABC$", ("~-abc", "~-AbC", "~-abd")),
        ("a dot and a letter of two bytes", "^~-.$", ("~-e", "~-é")),
        ("two dots and a letter of two bytes", "^~-..$", ("~-é", "~-e")),
        ("a letter of two bytes", "é$", ("~-é", "~-e")),
        ("digits", r"^~-\d$", ("~-3", "~-\u0663")),
        ("word characters", r"^~-\w+$", ("~-a_9", "~-é")),
        ("letters of the alphabet", "^~-[[:alpha:]]+$", ("~-ab", "~-é", "~-1")),
        ("bytes that are not a letter", "^~-[^a]+$", ("~-é", "~-a")),
        ("a name that is cleaned", "^~-a$", ("~-a\n", "\r~-a", "~-\nb")),
        ("an empty alternative", "^~-(a|)$", ("~-", "~-a", "~-b")),
        ("a number of times", "^~-a{2,3}$", ("~-a", "~-aa", "~-aaaa")),
        ("the shortest run", "^~-a+?b$", ("~-aab", "~-b")),
    )
)

# Names that no stream has: one that the pattern allows is answered otherwise than one it does not.
SYNTAX = tuple(
    script(
        f"pattern, of Perl's: {pattern}",
        *member(read=pattern),
        *(ask("A", f.query_offset("r", name), label=repr(name)) for name in NAMES),
    )
    for pattern in (
        r"^a{,2}$", r"a{,3}b", r"^a{ 1,2 }b", r"a{,}", r"\v", r"\h", r"\s", r"^\N$", r"^a$", r"a\Z",
        r"a\z", r"^(a|b$)$", r"^.*$", r"(?s)^a.b", r"\cA", r"\o{141}b", r"(?#x)ab", r"a\Kb", r"\Ga",
        r"\Qa{,\E", r"(?<n>a)b", r"(?|a|K)$", r"(?i)^k|B$", r"[[:upper:]]", r"[^\W]$", r"\p{Ll}",
        r"[a-c-z]b", r"\x61\x{62}", r"\141b", r"^(?!a).*", r"(?=aab)a", r"(?<!a)b", r"^(a)\1",
        r"^a++b", "(?x)a b #c",
    )
)  # fmt: skip

JUDGED = tuple(
    script(
        f"pattern, judged: {pattern}",
        add_user("~u"),
        judged(
            "set_permissions", user="~u", virtual_host="/", configure=pattern, write="", read=""
        ),
    )
    for pattern in (
        r"[\d-z]", r"[:alpha:]", r"[[.a.]]", r"a**", r"^*", r"a{2,1}", r"\x{100}", r"\q", r"[z-a]",
        r"(?=a)a", r"(?<!a)b", r"(?>a)b", r"a++b", r"(a)\1", r"(?m)^a$", r"(?x)a b", r"\R", r"\X",
        r"a$\n",
    )
)  # fmt: skip

OFFSETS = (
    script(
        "storing an offset without the right to read",
        opened("G"),
        ask("G", f.create("~s")),
        *member(configure=".*", write=".*"),
        ask("A", f.store_offset("r", "~s", 7), f.metadata(), wait=Wait(frames=1)),
        ask("G", f.query_offset("r", "~s")),
    ),
    script(
        "storing an offset of what is subscribed to, the right to read being gone",
        opened("G"),
        ask("G", f.create("~s")),
        *member(read=".*"),
        ask("A", f.subscribe(1, "~s")),
        allow("~u", write=".*"),
        tell("A", f.store_offset("r", "~s", 7)),
        ask("A", f.query_offset("r", "~s")),
        ask("G", f.query_offset("r", "~s"), label="seen by another"),
    ),
)

CHANGES = (
    script(
        "rights that are taken away act on what is asked next",
        opened("G"),
        ask("G", f.create("~s")),
        *member(configure=".*", write=".*", read=".*"),
        ask("A", f.stream_stats("~s")),
        allow("~u"),
        ask("A", f.stream_stats("~s")),
        ask("A", f.declare(1, "~s")),
        allow("~u", read=".*"),
        ask("A", f.stream_stats("~s")),
        administer("clear_permissions", user="~u", virtual_host="/"),
        ask("A", f.stream_stats("~s")),
        ask("A", f.metadata("~s")),
    ),
    script(
        "rights that are taken away leave publishers and subscriptions",
        opened("G"),
        ask("G", f.create("~s")),
        *member(configure=".*", write=".*", read=".*"),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        allow("~u"),
        ask("A", f.messages(1, 1, b"still"), wait=Wait(confirmed=1, records=1)),
        ask("A", f.delete_publisher(1)),
        ask("A", f.declare(1, "~s")),
        ask("A", f.unsubscribe(1)),
    ),
)

TAKEN_AWAY = (
    script(
        "all permissions are taken away under a publisher and a subscriber",
        opened("G"),
        ask("G", f.create("~s")),
        *member(configure=".*", write=".*", read=".*"),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s")),
        administer("clear_permissions", user="~u", virtual_host="/"),
        silence("A", label="told"),
        ask("A", f.messages(1, 1, b"m"), wait=Wait(frames=1, timeout_s=0.5), label="published"),
        ask("A", f.unsubscribe(1), label="unsubscribed"),
    ),
)

SCRIPTS: tuple[Script, ...] = (
    *MATRIX, *ON_A_SUPER_STREAM, *PARTS, *DEFAULT_EXCHANGE,
    *PATTERNS, *SYNTAX, *JUDGED, *OFFSETS, *CHANGES, *TAKEN_AWAY
)  # fmt: skip
