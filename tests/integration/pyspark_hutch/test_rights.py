"""The rights that docs/spark.md names for reads and staged writes: enough, and all needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from hutch.client.errors import Refused
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.batch import plan_batch
from pyspark_hutch.sink.commits import commit
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.reading_rig import NAME, records_of
from tests.sink_rig import batch_of, bodies_of, settings_for
from tests.spark.publishing import append, create_super_stream
from tests.stage_rig import PURPOSE, stage

COUNT = 4
LOGIN = {"username": "clerk", "password": "secret"}


class Rights(NamedTuple):
    """Names of streams and super streams between spaces, by right."""

    configure: str = ""
    write: str = ""
    read: str = ""

    def patterns(self) -> list[str]:
        return [f"^({'|'.join(names.split())})$" if names else "" for names in self]

    def fewer(self) -> list[Rights]:
        """Return these rights without one of them, each in turn."""
        return [
            self._replace(**{right: " ".join(one for one in names.split() if one != name)})
            for right, names in self._asdict().items()
            for name in names.split()
        ]


def read(server: HutchServer, **options: str) -> None:
    place = {"endpoints": f"{server.host}:{server.port}", "pool.idleTimeoutMs": "0"}
    settings = read_settings(place | LOGIN | options, is_streaming=False)
    cluster = Cluster(settings.connection, NAME)
    for split in plan_batch(cluster, settings):
        wanted = Range(split.place.stream, split.leader, split.low, split.high)
        found = list(records_of(RangeReader(cluster, wanted, 5_000), split.high))
        assert len(found) == COUNT


def write(server: HutchServer, **options: str) -> None:
    """Stage rows as a task does, and commit them as the driver does."""
    settings = settings_for(server, ignoreUnknownColumns=True, **LOGIN, **options)
    keys = [str(number % 2) for number in range(COUNT)]
    staged = stage(settings, [batch_of(bodies_of(COUNT), routing_key=keys)])
    commit(Cluster(settings.connection, NAME), PURPOSE, [staged], 5_000)


NEEDED: dict[str, tuple[Callable[[HutchServer], None], Rights]] = {
    "read": (partial(read, stream="s"), Rights(read="s")),
    "read super": (partial(read, superStream="t"), Rights(read="t t-0 t-1")),
    "write": (partial(write, stream="s"), Rights(write="s")),
    "write super": (partial(write, superStream="t"), Rights(write="t t-0 t-1")),
    "write by key": (
        partial(write, superStream="t", routing="key"),
        Rights(write="t t-0 t-1"),
    ),
    "create": (
        partial(write, stream="new", createStream="true"),
        Rights(configure="new", write="new"),
    ),
    "create super": (
        partial(write, superStream="u", createStream="true", partitions="2"),
        Rights(configure="u u-0 u-1", write="u-0 u-1", read="u"),
    ),
}


@pytest.mark.parametrize("what", NEEDED)
def test_a_job_needs_the_rights_that_are_documented_and_no_others(
    server: HutchServer, what: str
) -> None:
    work, needed = NEEDED[what]
    with Client.opened(*server.endpoint) as client:
        client.create("s")
        for stream in ("s", *create_super_stream(client, "t", 2)):
            append(client, stream, bodies_of(COUNT))
    ctl(server, "add_user", LOGIN["username"], stdin=b"secret\n")

    for fewer in needed.fewer():
        ctl(server, "set_permissions", LOGIN["username"], *fewer.patterns())
        with pytest.raises(Refused, match="access refused"):
            work(server)
    ctl(server, "set_permissions", LOGIN["username"], *needed.patterns())
    work(server)
