"""Scenarios that a client's library does not offer, and the reason.

A program lists what it offers when it starts; both lists together must be all scenarios, and a
version that offers more makes an entry here wrong, which a test says.
"""

from __future__ import annotations

from typing import Final

VERSIONS: Final[dict[str, str]] = {
    "rstream": "1.1.1",
    "rbfly": "0.10.0",
    "node": "1.0.0",
    "java": "1.11.0",
    "go": "1.8.3",
    "rust": "0.11.0",
}
"""The pinned versions that all of this is about."""

NO_SUB_ENTRIES: Final = "no sub-entries, neither written nor read"
NO_SUPER_STREAMS: Final = "no super streams"
NO_GROUPS: Final = "no single active consumers"
ONLY_PLAIN: Final = "only the SASL mechanism PLAIN"
ONLY_GZIP: Final = "of the compressions only gzip"

NOT_OFFERED: Final[dict[str, dict[str, str]]] = {
    "rstream": {"sub-snappy": ONLY_GZIP, "sub-lz4": ONLY_GZIP, "sub-zstd": ONLY_GZIP},
    "node": {"sub-snappy": ONLY_GZIP, "sub-lz4": ONLY_GZIP, "sub-zstd": ONLY_GZIP},
    "rbfly": {
        **dict.fromkeys(
            ("sub-none", "sub-gzip", "sub-snappy", "sub-lz4", "sub-zstd"), NO_SUB_ENTRIES
        ),
        **dict.fromkeys(("super-hash", "super-key", "super-read"), NO_SUPER_STREAMS),
        **dict.fromkeys(("sac", "super-sac"), NO_GROUPS),
        "tls-external": ONLY_PLAIN,
    },
    "rust": {
        **dict.fromkeys(
            ("sub-none", "sub-gzip", "sub-snappy", "sub-lz4", "sub-zstd"), NO_SUB_ENTRIES
        ),
        "tls-external": ONLY_PLAIN,
    },
}
