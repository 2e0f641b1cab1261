"""The results that SCENARIOS.md asks for, and where a client's own are others, why.

A result that is the same on both servers and not here would show a fault of the scenario, or the
same fault of both servers.
"""

from __future__ import annotations

from typing import Any, Final

from compat.clients.messages import LARGE_SIZES, bodies, large_body, summary

ALL_20: Final = list(range(20))
HUNDRED: Final = {"confirmed": 100, "refused": 0, "read": list(range(100))}
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

# By MurmurHash3 (32 bits, seed 104729) of the key's UTF-8, as all clients do it but those below.
BY_HASH: Final = {
    "0": [2, 10, 12, 21, 23, 26, 27],
    "1": [1, 3, 5, 6, 13, 16, 18, 20, 22, 24, 25, 28],
    "2": [0, 4, 7, 8, 9, 11, 14, 15, 17, 19, 29],
}

EXPECTED: Final[dict[str, Any]] = {
    "publish": {"confirmed": 20, "refused": 0, "read": ALL_20, "offsets": ALL_20},
    "batch": {"confirmed": 1000, "refused": 0, "read": summary(bodies(0, 999))},
    "large": {
        "confirmed": len(LARGE_SIZES),
        "refused": 0,
        "sizes": list(LARGE_SIZES),
        "read": summary([large_body(size) for size in LARGE_SIZES]),
    },
    **{f"sub-{codec}": HUNDRED for codec in CODECS},
    "offset-first": {"read": ALL_20},
    "offset-last": {"read": [19]},
    "offset-next": {"read": list(range(20, 30))},
    "offset-absolute": {"read": list(range(5, 20))},
    "offset-beyond": {"read": list(range(21, 30))},
    "offset-timestamp": {"read": list(range(10, 20))},
    "offset-future": {"read": list(range(20, 30))},
    "tracking": {"before": "none", "stored": [4, 7], "other": "none", "read": [8, 9]},
    "dedup": {
        "confirmed": [10, 10, 2],
        "last": [10, 15, 15, 16],
        "read": [*range(10), *range(111, 116), 216],
    },
    "filter": {
        "confirmed": 30,
        "banana": list(range(10, 20)),
        "apple or banana": list(range(20)),
        "banana or none": list(range(10, 30)),
    },
    "super-hash": {"confirmed": 30, "read": BY_HASH},
    "super-key": {
        "confirmed": 30,
        "read": {
            region: list(range(first, 30, 3))
            for first, region in enumerate(("amer", "emea", "apac"))
        },
    },
    "super-read": {"confirmed": 30, "read": list(range(30))},
    "sac": {"a": list(range(10)), "b": list(range(10, 20))},
    "super-sac": {"together": list(range(30)), "b": list(range(30, 60))},
    "reconnect": {
        "before": list(range(10)),
        "after": list(range(10, 20)),
        "recovery": "library",
    },
    "tls": {"confirmed": 20, "refused": 0, "read": ALL_20, "offsets": ALL_20},
    "tls-distrust": {"connected": False},
    "tls-external": {
        "confirmed": 5,
        "refused": 0,
        "read": list(range(5)),
        "offsets": list(range(5)),
    },
    # The codes that clients show differ too much: what RabbitMQ answers is right.
    "errors": None,
}

OTHERWISE: Final[dict[tuple[str, str], tuple[dict[str, Any], str]]] = {
    ("rstream", "dedup"): (
        {"last": [None] * 4},
        "it asks for the last publishing id only for itself",
    ),
    ("rstream", "super-hash"): (
        {
            "read": {
                "0": [1, 6, 7, 13, 17, 20, 22, 29],
                "1": [0, 3, 4, 5, 8, 12, 14, 15, 16, 23, 27, 28],
                "2": [2, 9, 10, 11, 18, 19, 21, 24, 25, 26],
            }
        },
        "it hashes the key's UTF-16 to 128 bits, all others its UTF-8 to 32",
    ),
    ("rstream", "super-key"): (
        {"read": {"amer": list(range(30)), "emea": [], "apac": []}},
        "it keeps the route of the first key for all others",
    ),
    ("node", "super-sac"): (
        {"b": sorted([*BY_HASH["0"], *BY_HASH["2"], *range(30, 60)])},
        "its super stream consumer begins where it was told at first, whatever is stored",
    ),
    ("rust", "reconnect"): (
        {"recovery": "program"},
        "it tells that the connection was lost, the program declares anew",
    ),
    ("rbfly", "tracking"): (
        {"before": None, "stored": None, "other": None},
        "it asks for a stored offset only to begin behind it",
    ),
    ("rbfly", "dedup"): (
        {"last": [None, 15, 15, 16]},
        "it asks for the last publishing id only when a publisher is made",
    ),
    ("rbfly", "filter"): (
        {"banana or none": None},
        "it cannot ask for messages without a filter value beside those with one",
    ),
}
"""Fields with other values, and the reason, by client and scenario."""


def expected(client: str, scenario: str) -> Any:  # noqa: ANN401 - JSON
    """Return the result that a client should have; None if RabbitMQ's is right whatever it is."""
    found = EXPECTED[scenario]
    others, _ = OTHERWISE.get((client, scenario), ({}, ""))
    return None if found is None else {**found, **others}
