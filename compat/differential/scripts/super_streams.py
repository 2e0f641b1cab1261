"""Super streams, and the exchanges they are made of: order, routes, codes, rights, and the end."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    add_user,
    administer,
    allow,
    ask,
    hear,
    opened,
    refused,
    script,
    silence,
)

ORDER = "x-stream-partition-order"
PARTS = ["~x-0", "~x-1", "~x-2"]
KEYS = ["0", "1", "2"]
BAD_ARGUMENT = {"stream-filter-size-bytes": "3"}


def three(**arguments: str) -> Step:
    """Create a super stream of three partitions."""
    named = {key.replace("_", "-"): value for key, value in arguments.items()}
    return ask("A", f.create_super("~x", PARTS, KEYS, named), label="create")


def listed(name: str = "~x", label: str = "partitions") -> Step:
    """List the partitions."""
    return ask("A", f.partitions(name), label=label)


def routed(*keys: str, name: str = "~x") -> tuple[Step, ...]:
    """Ask where keys lead."""
    return tuple(ask("A", f.route(key, name), label=f"route {key}") for key in keys)


def exchange(kind: str, name: str = "~e") -> Step:
    """Make an exchange, as a client of AMQP does."""
    return administer("add_exchange", virtual_host="/", name=name, type=kind)


def bound(stream: str, key: str = "", name: str = "~e", *, order: int | str | None = None) -> Step:
    """Bind a stream to an exchange, as a client of AMQP does."""
    arguments = {} if order is None else {ORDER: order}
    return administer(
        "bind",
        virtual_host="/",
        source=name,
        destination=stream,
        routing_key=key,
        arguments=arguments,
    )


def streams(*letters: str) -> tuple[Step, ...]:
    """Connect and create streams of these letters."""
    return (opened("A"), *(ask("A", f.create(f"~{letter}")) for letter in letters))


ASKED = (
    script("route in the default exchange", opened("A"), ask("A", f.route("~none", ""))),
    script("route in the default exchange to a stream", *streams("s"), *routed("~s", name="")),
    *(
        script(f"what is bound to {name}", opened("A"), listed(name), *routed("key", name=name))
        for name in (
            "amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match",
            "amq.rabbitmq.trace", "amq.rabbitmq.log", "amq.nothing",
        )
    ),
    script("route in what does not exist", opened("A"), ask("A", f.route("key", "~none"))),
    script("route in a stream", opened("A"), ask("A", f.create("~s")), ask("A", f.route("", "~s"))),
    script("partitions of what does not exist", opened("A"), ask("A", f.partitions("~none"))),
    script("partitions of a stream", *streams("s"), ask("A", f.partitions("~s"))),
)  # fmt: skip

CREATED = (
    script(
        "create a super stream",
        opened("A"),
        three(),
        listed(),
        *routed("0", "1", "2", "3", ""),
    ),
    script(
        "the order of partitions is the one they were given in",
        opened("A"),
        ask("A", f.create_super("~x", ["~c", "~a", "~b"], ["z", "y", "x"])),
        listed(),
        *routed("x", "y", "z"),
        ask("A", f.metadata("~a", "~b", "~c")),
    ),
    script(
        "twelve partitions are in the order of numbers",
        opened("A"),
        ask("A", f.create_super("~x", [f"~{at}" for at in range(12)], list("abcdefghijkl"))),
        listed(),
    ),
    script(
        "several partitions with one key",
        opened("A"),
        ask("A", f.create_super("~x", ["~x-2", "~x-0", "~x-1"], ["k", "k", "other"])),
        listed(),
        *routed("k", "other", "K", "k "),
    ),
    script(
        "an empty key",
        opened("A"),
        ask("A", f.create_super("~x", PARTS[:2], ["", "1"])),
        *routed("", "1"),
    ),
    script(
        "a super stream without partitions",
        opened("A"),
        ask("A", f.create_super("~x", [], [])),
        listed(),
        *routed("0"),
        ask("A", f.create_super("~x", [], [])),
        ask("A", f.delete_super("~x")),
        listed(),
    ),
    script(
        "no partitions, and a bad argument",
        opened("A"),
        ask("A", f.create_super("~x", [], [], BAD_ARGUMENT)),
        listed(),
    ),
    *(
        script(
            f"create a super stream with {name}",
            opened("A"),
            ask("A", f.create_super(super_stream, parts, keys, arguments)),
            listed(),
            ask("A", f.metadata("~x-0", "~x-1")),
        )
        for name, super_stream, parts, keys, arguments in (
            ("fewer keys than partitions", "~x", ["~x-0", "~x-1"], ["0"], {}),
            ("more keys than partitions", "~x", ["~x-0"], ["0", "1"], {}),
            ("no keys", "~x", ["~x-0"], [], {}),
            ("a partition twice", "~x", ["~x-0", "~x-0"], ["0", "1"], {}),
            ("an empty name", "", ["~x-0"], ["0"], {}),
            ("a reserved name", "amq.~x", ["~x-0"], ["0"], {}),
            ("a name of line breaks", "\r\n", ["~x-0"], ["0"], {}),
            ("an empty partition", "~x", ["~x-0", ""], ["0", "1"], {}),
            ("a reserved partition", "~x", ["~x-0", "amq.~x"], ["0", "1"], {}),
            ("a bad filter size", "~x", ["~x-0", "~x-1"], ["0", "1"], BAD_ARGUMENT),
            ("a bad locator", "~x", ["~x-0"], ["0"], {"queue-leader-locator": "nowhere"}),
            ("a bad cluster size", "~x", ["~x-0"], ["0"], {"initial-cluster-size": "0"}),
            ("an unknown argument", "~x", ["~x-0"], ["0"], {"colour": "red"}),
            ("1,001 partitions", "~x", [f"~x-{at}" for at in range(1_001)], ["k"] * 1_001, {}),
        )
    ),
    script(
        "an argument of a super stream that is no integer",
        opened("A"),
        refused("A", f.create_super("~x", ["~x-0"], ["0"], {"max-length-bytes": "many"})),
    ),
    script(
        "line breaks in the name of a super stream",
        opened("A"),
        ask("A", f.create_super("~x\n\r", ["~x-0"], ["0"])),
        listed(),
        listed("~x\n\r"),
        ask("A", f.delete_super("~x\n\r")),
        listed(),
    ),
    script(
        "lists whose counts lie: one more",
        opened("A"),
        refused("A", f.request(0x1D, f.text("~x") + b"\0\0\0\2" + f.text("~x-0") + b"\0" * 8)),
    ),
    script(
        "lists whose counts lie: four milliards",
        opened("A"),
        refused("A", f.request(0x1D, f.text("~x") + b"\xff\xff\xff\xff" + f.text("~x-0"))),
    ),
)  # fmt: skip

TAKEN = (
    script(
        "create a super stream again",
        opened("A"),
        three(),
        three(),
        three(max_age="1h"),
        ask("A", f.create_super("~x", ["~other"], ["0"])),
        ask("A", f.create_super("~x", ["~other"], [])),
        ask("A", f.create_super("~x", ["~other"], ["0"], BAD_ARGUMENT)),
        ask("A", f.metadata("~other")),
    ),
    script(
        "a partition's name is a stream's",
        *streams("s"),
        ask("A", f.create_super("~x", ["~x-0", "~s"], ["0", "1"])),
        ask("A", f.create_super("~x", ["~s"], ["0"], BAD_ARGUMENT)),
        ask("A", f.metadata("~x-0", "~s")),
        listed(),
    ),
    script(
        "a super stream with the name of a stream",
        *streams("s"),
        ask("A", f.create_super("~s", ["~s-0"], ["0"])),
        listed("~s"),
        ask("A", f.delete_super("~s")),
        ask("A", f.metadata("~s", "~s-0")),
    ),
    script(
        "a super stream that is its own partition",
        opened("A"),
        ask("A", f.create_super("~x", ["~x"], ["0"])),
        listed(),
        *routed("0"),
        ask("A", f.delete_super("~x")),
        ask("A", f.metadata("~x")),
    ),
    script(
        "the arguments of a partition",
        opened("A"),
        three(max_age="1h", max_length_bytes="5000"),
        *(
            ask("A", f.create("~x-0", arguments), label="as a stream")
            for arguments in (
                {},
                {"max-age": "1h", "max-length-bytes": "5000"},
                {"max-age": "60m", "max-length-bytes": "5000", "queue-leader-locator": "balanced"},
            )
        ),
    ),
    script(
        "the locator of a partition",
        opened("A"),
        three(queue_leader_locator="min-masters"),
        ask("A", f.create("~x-0", {"queue-leader-locator": "min-masters"})),
        ask("A", f.create("~x-0", {"queue-leader-locator": "balanced"})),
    ),
    script(
        "an exchange of that name exists",
        opened("A"),
        exchange("fanout", "~x"),
        three(),
        listed(),
        ask("A", f.metadata("~x-0")),
    ),
)

DELETED = (
    script("delete what is no super stream", opened("A"), ask("A", f.delete_super("~none"))),
    script(
        "delete a stream as a super stream",
        *streams("s"),
        ask("A", f.delete_super("~s")),
        ask("A", f.metadata("~s", corr=3)),
    ),
    script(
        "delete a super stream, twice, and create it again",
        opened("A"),
        three(),
        ask("A", f.delete_super("~x")),
        listed(),
        *routed("0"),
        ask("A", f.metadata(*PARTS)),
        ask("A", f.delete_super("~x")),
        ask("A", f.create_super("~x", ["~x-0"], ["new"])),
        listed(),
        *routed("0", "new"),
    ),
    script(
        "who uses a partition is told after the reply",
        opened("A"),
        opened("B"),
        opened("C"),
        three(),
        ask("A", f.declare(1, "~x-0")),
        ask("B", f.declare(1, "~x-1")),
        ask("B", f.messages(1, 2, b"m"), wait=Wait(confirmed=1)),
        ask("A", f.delete_super("~x"), wait=Wait(frames=2)),
        hear("B", frames=1),
        silence("C"),
        ask("B", f.messages(1, 3, b"m"), wait=Wait(frames=1)),
    ),
    script(
        "a partition that is deleted is a partition no more",
        opened("A"),
        three(),
        ask("A", f.delete("~x-1")),
        listed(),
        *routed("0", "1"),
        ask("A", f.create("~x-1")),
        listed(),
        *routed("1"),
        ask("A", f.delete_super("~x")),
        ask("A", f.metadata(*PARTS)),
    ),
    script(
        "a super stream whose partitions are all deleted",
        opened("A"),
        three(),
        *(ask("A", f.delete(part)) for part in PARTS),
        listed(),
        ask("A", f.create_super("~x", ["~y"], ["0"])),
        ask("A", f.delete_super("~x")),
    ),
)

EXCHANGES = (
    *(
        script(f"an exchange without bindings: {kind}", opened("A"), exchange(kind), listed("~e"),
               *routed("k", name="~e"), ask("A", f.delete_super("~e")), listed("~e"))
        for kind in ("direct", "fanout", "topic")
    ),
    script(
        "direct: streams are found by the very key",
        *streams("a", "b", "c"),
        exchange("direct"),
        bound("~b", "k"),
        bound("~a", "k"),
        bound("~c", "other"),
        *routed("k", "other", "K", "", "k.k", name="~e"),
    ),
    script(
        "fanout: all streams are found",
        *streams("a", "b"),
        exchange("fanout"),
        bound("~b", "k"),
        bound("~a"),
        *routed("k", "", "other", name="~e"),
    ),
    script(
        "topic: streams are found by patterns",
        *streams("a", "b", "c", "d", "e", "f", "g", "h"),
        exchange("topic"),
        *(
            bound(f"~{letter}", pattern)
            for letter, pattern in zip(
                "abcdefgh", ("a.*", "a.#", "#", "*.b", "a.b", "#.#", "", "*.#.c"), strict=True
            )
        ),
        *routed("a.b", "a", "", "x", "a.b.c", ".b", "a..b", "*", "#", "c", "a.c", "..", name="~e"),
    ),
    script(
        "topic: bindings that are undone find nothing",
        *streams("a", "b"),
        exchange("topic"),
        bound("~a", "x.#"),
        bound("~a", "x.y"),
        bound("~b", "x.y.z"),
        *routed("x.y", "x.y.z", name="~e"),
        ask("A", f.delete("~a")),
        *routed("x.y", "x.y.z", name="~e"),
    ),
    script(
        "partitions by the order that bindings state",
        *streams("a", "b", "c", "d"),
        exchange("direct"),
        bound("~a", "1", order=7),
        bound("~b", "2", order=-3),
        bound("~c", "3", order=0),
        bound("~d", "4", order="5"),
        listed("~e"),
    ),
    script(
        "a binding without order is the last",
        *streams("a", "b", "c"),
        exchange("direct"),
        bound("~a", "1"),
        bound("~b", "2", order=9),
        bound("~c", "3", order=1),
        listed("~e"),
    ),
    script(
        "bindings without order",
        *streams("a", "b", "c"),
        exchange("direct"),
        bound("~b", "1"),
        bound("~a", "2"),
        bound("~c", "3"),
        listed("~e", "any order"),
    ),
    script(
        "a stream that is bound twice is listed twice and routed to once",
        *streams("a", "b"),
        exchange("fanout"),
        bound("~a", "1", order=0),
        bound("~b", "2", order=1),
        bound("~a", "3", order=2),
        listed("~e"),
        *routed("k", name="~e"),
    ),
    script(
        "deleting any exchange takes the streams that are bound to it along",
        *streams("a", "b", "c"),
        exchange("fanout"),
        bound("~a"),
        bound("~c", "k"),
        ask("A", f.delete_super("~e")),
        ask("A", f.metadata("~a", "~b", "~c")),
        listed("~e"),
    ),
    script(
        "an exchange is deleted without its streams",
        *streams("a"),
        exchange("direct"),
        bound("~a", "k"),
        administer("delete_exchange", virtual_host="/", name="~e"),
        listed("~e"),
        *routed("k", name="~e"),
        ask("A", f.metadata("~a")),
        exchange("direct"),
        *routed("k", name="~e"),
    ),
    script(
        "a partition more for a super stream",
        *streams("s"),
        three(),
        bound("~s", "new", name="~x", order=3),
        listed(),
        *routed("new"),
        ask("A", f.delete_super("~x")),
        ask("A", f.metadata("~s")),
    ),
    script(
        "a stream in two exchanges",
        *streams("s"),
        exchange("direct", "~d"),
        exchange("direct", "~e"),
        bound("~s", "k", name="~d"),
        bound("~s", "k", name="~e"),
        ask("A", f.delete_super("~d")),
        *routed("k", name="~e"),
        listed("~e"),
    ),
)  # fmt: skip


def member(**patterns: str) -> tuple[Step, ...]:
    """Return the steps that make a user with these patterns, and connect it as B."""
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return add_user("~u"), allow("~u", **(everything | patterns)), opened("B", user="~u")


def as_member(super_stream: str = "~x") -> tuple[Step, ...]:
    """Try everything on a super stream of three partitions as B."""
    return (
        ask("B", f.partitions(super_stream), label="partitions"),
        ask("B", f.route("1", super_stream), label="route"),
        ask("B", f.route("none", super_stream), label="route nowhere"),
        ask("B", f.metadata(*PARTS), label="metadata"),
        ask("B", f.create_super("~y", ["~y-0", "~x-1"], ["0", "1"]), label="create"),
        ask("B", f.delete_super(super_stream), label="delete"),
        ask("B", f.delete_super("~none"), label="delete what is not there"),
    )


RIGHTS = tuple(
    script(
        f"super stream, rights: {name}",
        opened("A"),
        three(),
        *member(**patterns),
        *as_member(),
        listed(label="afterwards"),
    )
    for name, patterns in (
        ("all", {}),
        ("none", {"configure": "^$", "write": "^$", "read": "^$"}),
        ("no configure", {"configure": "^$"}),
        ("no write", {"write": "^$"}),
        ("no read", {"read": "^$"}),
        ("read only the partitions", {"configure": "^$", "write": "^$", "read": "x-[012]$"}),
        ("only on the super stream", {"configure": "x$", "write": "x$", "read": "x$"}),
        ("configure only the partitions", {"configure": "-[012]$"}),
        ("write only one partition", {"write": "(x|x-0)$"}),
        ("read and write all but one partition", {"write": "(x|x-0|x-2)$", "read": "(x|x-0|x-2)$"}),
        ("read one partition, write the other", {"write": "(x|x-0|x-2)$", "read": "(x|x-1)$"}),
    )
)
UNTOLD = (
    script(
        "1,001 partitions without a right to any",
        opened("A"),
        *member(configure="x$"),
        ask(
            "B",
            f.create_super("~x", [f"~x-{at}" for at in range(1_001)], ["k"] * 1_001),
            label="too many",
        ),
    ),
)

SCRIPTS: tuple[Script, ...] = (
    *ASKED, *CREATED, *TAKEN, *DELETED, *EXCHANGES, *RIGHTS, *UNTOLD,
)  # fmt: skip
