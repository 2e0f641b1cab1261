"""Creating, comparing, deleting and describing streams."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import Script, ask, opened, refused, script

VALID = (
    ("max-length-bytes", "1000000"),
    ("max-length-bytes", "0"),
    ("max-length-bytes", "-1"),
    ("max-length-bytes", "100000000000000000000"),
    ("max-length-bytes", "+5"),
    ("max-length-bytes", "007"),
    ("max-age", "60m"),
    ("max-age", "1Y"),
    ("max-age", "7D"),
    ("max-age", "1M"),
    ("max-age", "30s"),
    ("max-age", "abc"),
    ("max-age", "5x"),
    ("max-age", "0s"),
    ("max-age", ""),
    ("stream-max-segment-size-bytes", "3000000000"),
    ("stream-max-segment-size-bytes", "3000000001"),
    ("stream-max-segment-size-bytes", "1000"),
    ("stream-max-segment-size-bytes", "9"),
    ("stream-max-segment-size-bytes", "8"),
    ("stream-max-segment-size-bytes", "1"),
    ("stream-max-segment-size-bytes", "0"),
    ("stream-max-segment-size-bytes", "-5"),
    ("initial-cluster-size", "1"),
    ("initial-cluster-size", "3"),
    ("initial-cluster-size", "0"),
    ("initial-cluster-size", "-1"),
    ("queue-leader-locator", "client-local"),
    ("queue-leader-locator", "balanced"),
    ("queue-leader-locator", "least-leaders"),
    ("queue-leader-locator", "random"),
    ("queue-leader-locator", "min-masters"),
    ("queue-leader-locator", "nowhere"),
    ("queue-leader-locator", ""),
    ("stream-filter-size-bytes", "16"),
    ("stream-filter-size-bytes", "255"),
    ("stream-filter-size-bytes", "15"),
    ("stream-filter-size-bytes", "256"),
    ("x-max-age", "60m"),
    ("max-length", "5"),
    ("unheard-of", "value"),
    ("", ""),
)
ARGUMENTS = tuple(
    script(
        f"create with {key or 'an empty key'}={value or 'nothing'}",
        opened("A"),
        ask("A", f.create("~s", {key: value}, corr=1)),
        ask("A", f.create("~s", {key: value}, corr=2)),
        ask("A", f.metadata("~s", corr=3)),
    )
    for key, value in VALID
)

# RabbitMQ crashes on these.
NOT_INTEGERS = tuple(
    script(
        f"create with no integer in {key}: {value!r}",
        opened("A"),
        refused("A", f.create("~s", {key: value})),
    )
    for key, value in (
        ("max-length-bytes", "many"),
        ("max-length-bytes", ""),
        ("max-length-bytes", " 5"),
        ("max-length-bytes", "5.0"),
        ("stream-max-segment-size-bytes", "1e6"),
        ("initial-cluster-size", "x"),
        ("stream-filter-size-bytes", "16 "),
    )
)

COMPARED = tuple(
    script(
        f"create again: {name}",
        opened("A"),
        ask("A", f.create("~s", first, corr=1)),
        ask("A", f.create("~s", second, corr=2)),
    )
    for name, first, second in (
        ("nothing and nothing", {}, {}),
        ("an argument missing", {"max-age": "1h"}, {}),
        ("an argument added", {}, {"max-age": "1h"}),
        ("another value", {"max-length-bytes": "5000"}, {"max-length-bytes": "6000"}),
        ("the same number written otherwise",
         {"max-length-bytes": "5000"}, {"max-length-bytes": "05000"}),
        ("the same age written otherwise", {"max-age": "1h"}, {"max-age": "60m"}),
        ("the same age in seconds", {"max-age": "1D"}, {"max-age": "86400s"}),
        ("another age", {"max-age": "1h"}, {"max-age": "61m"}),
        ("no age", {"max-age": "0s"}, {"max-age": "0s"}),
        ("no age in another unit", {"max-age": "0s"}, {"max-age": "0h"}),
        ("no age with more digits", {"max-age": "00s"}, {"max-age": "0s"}),
        ("two ages that are none", {"max-age": "abc"}, {"max-age": "abd"}),
        ("an age and one that is none", {"max-age": "1h"}, {"max-age": "abc"}),
        ("an unknown argument added", {}, {"colour": "red"}),
        ("an unknown argument missing", {"colour": "red"}, {}),
        ("an unknown argument beside a known one",
         {"max-age": "1h"}, {"max-age": "1h", "colour": "red"}),
        ("the same arguments in another order",
         {"max-age": "1h", "max-length-bytes": "5"}, {"max-length-bytes": "5", "max-age": "1h"}),
        ("the default of the segment size given", {},
         {"stream-max-segment-size-bytes": "500000000"}),
        ("the default of the filter size given", {}, {"stream-filter-size-bytes": "16"}),
        ("the default of the locator given", {}, {"queue-leader-locator": "client-local"}),
        ("another locator",
         {"queue-leader-locator": "client-local"}, {"queue-leader-locator": "balanced"}),
        ("the number of nodes given", {}, {"initial-cluster-size": "1"}),
        ("wrong arguments for what exists", {}, {"stream-filter-size-bytes": "3"}),
        ("another segment size",
         {"stream-max-segment-size-bytes": "1000"}, {"stream-max-segment-size-bytes": "2000"}),
    )
)  # fmt: skip

NAMES = (
    script("create with an empty name", opened("A"), ask("A", f.create(""))),
    script("create with a name that begins with amq.", opened("A"), ask("A", f.create("amq.~s"))),
    script(
        "create with a name that begins with amq",
        opened("A"),
        ask("A", f.create("amqp~s")),
        ask("A", f.metadata("amqp~s")),
    ),
    script(
        "line breaks in a name are removed by create, and only there",
        opened("A"),
        ask("A", f.create("~a\nb\r", corr=1)),
        ask("A", f.create("~ab", corr=2)),
        ask("A", f.metadata("~ab", "~a\nb\r", corr=3)),
        ask("A", f.delete("~a\nb\r", corr=4)),
        ask("A", f.delete("~ab", corr=5)),
    ),
    script("a name of nothing but line breaks", opened("A"), ask("A", f.create("\r\n\n"))),
    script("amq. behind a line break", opened("A"), ask("A", f.create("\namq.~s"))),
    *(
        script(
            f"a name with {name}",
            opened("A"),
            ask("A", f.create(text, corr=1)),
            ask("A", f.create(text, corr=2)),
            ask("A", f.metadata(text, corr=3)),
            ask("A", f.declare(1, text, corr=4)),
            ask("A", f.delete(text, corr=5)),
        )
        for name, text in (
            ("slashes and dots", "~/../x/./y"),
            ("other scripts", "~größe-日本-🐇"),
            ("spaces and a tab", "~ a\tb "),
            ("a NUL", "~a\0b"),
            ("200 bytes", "~" + "n" * 192),
            ("percent signs and quotes", "~%2F%00'\"\\"),
            ("upper case", "~ABC"),
        )
    ),
    script(
        "upper and lower case are different names",
        opened("A"),
        ask("A", f.create("~abc", corr=1)),
        ask("A", f.create("~ABC", corr=2)),
        ask("A", f.metadata("~abc", "~ABC", "~Abc", corr=3)),
    ),
)

DELETED = (
    script("delete what does not exist", opened("A"), ask("A", f.delete("~none"))),
    script("delete the empty name", opened("A"), ask("A", f.delete(""))),
    script(
        "delete, delete again, create again",
        opened("A"),
        ask("A", f.create("~s", {"max-age": "1h"}, corr=1)),
        ask("A", f.delete("~s", corr=2)),
        ask("A", f.delete("~s", corr=3)),
        ask("A", f.metadata("~s", corr=4)),
        ask("A", f.create("~s", corr=5)),
        ask("A", f.stream_stats("~s", corr=6)),
    ),
)

DESCRIBED = (
    script(
        "metadata of 300 names",
        opened("A"),
        ask("A", f.create("~007")),
        ask("A", f.metadata(*(f"~{number:03}" for number in range(300)))),
    ),
    script("metadata of nothing", opened("A"), ask("A", f.metadata())),
    script("metadata of what does not exist", opened("A"), ask("A", f.metadata("~none"))),
    script("metadata of the empty name", opened("A"), ask("A", f.metadata(""))),
    script(
        "metadata of streams that exist and others, some named twice",
        opened("A"),
        ask("A", f.create("~a", corr=1)),
        ask("A", f.create("~b", corr=2)),
        ask("A", f.create("~c", corr=3)),
        ask("A", f.metadata("~a", "~b", "~c", corr=4)),
        ask("A", f.metadata("~c", "~a", "~b", corr=5)),
        ask("A", f.metadata("~b", "~b", "~b", corr=6)),
        ask("A", f.metadata("~none", "~b", "~also-none", "~a", "~none", corr=7)),
        ask("A", f.metadata("~a", "", corr=8)),
    ),
)

# No text in any encoding that is in use. None of them exists: they are only looked up.
NO_TEXT = b"~\xff\xfe\x80"
WITHOUT_TEXT = tuple(
    script(f"a name that is no text: {name}", opened("A"), ask("A", body))
    for name, body in (
        ("metadata", f.request(0x0F, b"\0\0\0\1" + f.text(NO_TEXT))),
        ("delete", f.request(0x0E, f.text(NO_TEXT))),
        ("declare", f.request(0x01, b"\1" + f.text("") + f.text(NO_TEXT))),
        ("subscribe", f.request(0x07, b"\1" + f.text(NO_TEXT) + f.FIRST + b"\0\1")),
        ("query_offset", f.request(0x0B, f.text("r") + f.text(NO_TEXT))),
        ("query_sequence", f.request(0x05, f.text("r") + f.text(NO_TEXT))),
        ("stream_stats", f.request(0x1C, f.text(NO_TEXT))),
        ("resolve", f.request(0x1F, f.text(NO_TEXT) + f.FIRST)),
        ("partitions", f.request(0x19, f.text(NO_TEXT))),
        ("route", f.request(0x18, f.text("k") + f.text(NO_TEXT))),
    )
)

SCRIPTS: tuple[Script, ...] = (
    *ARGUMENTS, *NOT_INTEGERS, *COMPARED, *NAMES, *DELETED, *DESCRIBED, *WITHOUT_TEXT,
)  # fmt: skip
