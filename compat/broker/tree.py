"""A Debian tree that holds RabbitMQ 4.3, built once and kept in the cache.

Debian's next release carries rabbitmq-server 4.3 with the stream plugin. The tree is only read
from: what a broker writes lies in a folder of its own, see `node`.
"""

from __future__ import annotations

import os
from pathlib import Path

from compat import debian

SUITE = "forky"
PACKAGES = ("rabbitmq-server", "ca-certificates", "procps")


def cache_folder() -> Path:
    """Return the folder under which everything of the reference broker is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hutch"


def tree() -> Path:
    """Return the Debian tree with RabbitMQ in it, building it the first time (about a minute).

    Raises:
        debian.CannotBuild: Not root, not Debian, no mirror, or debootstrap failed.
    """
    return debian.tree(cache_folder() / "rabbitmq-4.3", SUITE, PACKAGES)
