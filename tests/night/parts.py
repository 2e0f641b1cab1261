"""The parts of the night, and those that take hours: what each proves, and how much it tries."""

from __future__ import annotations

from typing import Final

from tests.night.part import JAVA, PYTEST, ROOT, Lane, Part, make, module, program

STATE: Final = ROOT / ".venv"
"""Where parts that count keep how far they came."""
FUZZ_RUNS: Final = 30_000
DAMAGED: Final = 2_000
FRAMES: Final = 200_000
SEQUENCES: Final = 1_500
KILLS: Final = 100

DEBOOTSTRAP: Final = program("debootstrap", "install it (Debian: apt install debootstrap)")
GCC: Final = program("gcc", "install it (Debian: apt install gcc)")
MAVEN: Final = program("mvn", "install it (Debian: apt install maven)")
MOSQUITTO: Final = program("mosquitto", "install it (Debian: apt install mosquitto)")
PARALLEL: Final = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
SEARCHES: Final = ("tests/property", "tests/conformance", "tests/unit", "-m", "not slow")

_FUZZED: Final = r"#(\d+)\b"


def _fuzz(target: str) -> Part:
    return Part(
        f"fuzz-{target}",
        f"any bytes as {target} are an answer or an error of the protocol",
        module("tests.fuzz", target, "--kept", f"{STATE}/fuzz", "--runs", str(FUZZ_RUNS)),
        f"{FUZZ_RUNS:,} inputs",
        300,
        progress=_FUZZED,
        figure=_FUZZED,
    )


def _suite(name: str, limit_s: int) -> Part:
    return Part(
        f"suite-{name}",
        f"the tests that others wrote for the {name} client hold on Hutch",
        make("suites", f"ARGS={name}"),
        "the whole suite",
        limit_s,
        lane=Lane.WAITS,
        progress=r"(\d+) passed",
        figure=r"(\d+ tests, \d+ passed, \d+ failed, \d+ skipped)",
    )


def _root(release: str) -> Part:
    return Part(
        f"root-{release}",
        f"an ordinary user's `make test` passes in a bare Debian {release}",
        make("roots", f"ARGS={release}"),
        "make test",
        1_500,
        needs=(DEBOOTSTRAP,),
        progress=r" min: (\d+ %|make: .*)$",
        figure=r"=* ?(\d+ (?:passed|failed), .*) in ",
    )


NIGHT: Final = (
    Part(
        "search",
        "random search finds nothing against the laws of the properties",
        (*PYTEST, *PARALLEL, "--timeout", "600", *SEARCHES),
        "300 examples of each property",
        1_200,
    ),
    Part(
        "simulation",
        "after a crash at every step what was acknowledged is there",
        (*PYTEST, *PARALLEL, "tests/simulation"),
        "five times the crashes of make test",
        900,
        environment={"HUTCH_TEST_FACTOR": "5"},
    ),
    Part(
        "members",
        "what a member of a cluster confirmed is there after each takeover, whatever goes wrong",
        (*PYTEST, *PARALLEL, "tests/simulation/replica"),
        "5,000 seeds",
        1_500,
        environment={"HUTCH_TEST_FACTOR": "34"},
    ),
    Part(
        "kills",
        "kill -9 takes nothing that was acknowledged, at any port",
        (
            *PYTEST,
            "tests/integration/test_kill.py",
            "tests/integration/mewbase/test_kills.py",
            "tests/integration/mewbase/test_binders.py",
            "tests/simulation/test_kill.py",
        ),
        f"{KILLS} kills of each kind",
        600,
        environment={"HUTCH_MEWBASE_KILLS": str(KILLS), "HUTCH_TEST_FACTOR": "10"},
    ),
    Part(
        "bridge",
        "kills of the bridge and of each broker lose no message of a route",
        (*PYTEST, "tests/integration/bridge/test_kills.py"),
        "100,000 messages a route, 11 kills",
        2_600,
        environment={"HUTCH_TEST_FACTOR": "10"},
        lane=Lane.WAITS,
        needs=(MOSQUITTO,),
    ),
    Part(
        "cluster",
        "faults of members and of the log's servers lose nothing that was confirmed",
        (*PYTEST, "-s", "tests/integration/cluster/test_faults.py"),
        "50 faults",
        1_500,
        environment={"HUTCH_TEST_FACTOR": "25"},
        lane=Lane.WAITS,
        figure=r"(\[.*confirmed, .*)",
    ),
    Part(
        "cluster-times",
        "a takeover is over in 8 s, and faults of the log lead to none",
        module("tests.integration.cluster.times"),
        "20 kills, 20 elections, 20 stops",
        1_500,
        lane=Lane.WAITS,
        progress=r"^(?:killed|elections): (.+)$",
        figure=r"(\d+ kills: .*)",
    ),
    Part(
        "cluster-store",
        "the laws of the store hold on a log of three servers",
        (*PYTEST, *PARALLEL, "tests/conformance", "-k", "jetstream"),
        "all tests of conformance",
        900,
        environment={"HUTCH_CONFORMANCE_LOG": "whole"},
    ),
    Part(
        "limits",
        "lists cost what is in them, no turn is long, and memory is given back",
        (
            *PYTEST,
            "tests/integration/test_stream_lists.py",
            "tests/integration/test_definitions.py",
            "tests/integration/test_management_bodies.py",
            "tests/integration/mewbase/test_lists.py",
            "tests/integration/mewbase/test_given_back.py",
            "tests/integration/mewbase/test_hostile_readers.py",
            "tests/integration/pravega/test_early_lists.py",
            "tests/integration/pravega/test_given_back.py",
            "tests/unit/gateway/pravega/controller/test_streams.py",
        ),
        "the largest lists, and 2.4 GB",
        900,
        environment={"HUTCH_TEST_FACTOR": "10"},
    ),
    Part(
        "damage",
        "nothing wrong is answered from a damaged directory",
        module("tests.damage", "--places", str(DAMAGED)),
        f"{DAMAGED:,} damaged places",
        600,
    ),
    Part(
        "frames",
        "damaged frames harm no neighbour and leave no memory behind",
        module("tests.integration.network_fuzz", "--frames", str(FRAMES)),
        f"{FRAMES:,} frames",
        600,
    ),
    Part(
        "requests",
        "damaged requests at a store's ports cost a client that behaves nothing",
        module("tests.integration.pravega.network_fuzz", "--seconds", "60"),
        "60 s of requests",
        240,
    ),
    *map(_fuzz, sorted(path.name for path in (ROOT / "tests/fuzz/corpus").iterdir())),
    Part(
        "sanitize",
        "no compiled module reads or writes beyond its memory",
        module(
            *("tests.sanitize", "--folder", f"{STATE}/sanitize"),
            *("--kept", f"{STATE}/fuzz", "--seconds", "60"),
        ),
        "the modules' tests and 60 s of damaged inputs",
        1_500,  # on a fresh machine the modules are compiled with the checks first
        needs=(GCC,),
    ),
    Part(
        "sequences",
        "RabbitMQ and Hutch answer drawn sequences of commands alike",
        module("compat.differential.generated", "--sequences", str(SEQUENCES)),
        f"{SEQUENCES:,} sequences",
        2_400,
        lane=Lane.WAITS,
    ),
    Part(
        "pravega-java",
        "readers by Pravega's Java client see the same on Pravega and on Hutch",
        module("compat.pravega.java"),
        "all scenarios, by the oldest and the newest client",
        900,
        lane=Lane.WAITS,
        needs=(JAVA, MAVEN),
        progress=r"^(?:same|meant|differs) +(\S+)",
        figure=r"(\d+ scenarios: .*)",
    ),
    Part(
        "pravega-own",
        "Pravega's own integration tests hold on Hutch",
        module("compat.pravega.java.own"),
        "29 classes",
        1_800,
        lane=Lane.WAITS,
        needs=(JAVA, MAVEN),
        progress=r"^(?:passed|failed|skipped) (\S+)",
        figure=r"(\d+ tests, \d+ passed, .*)",
    ),
    Part(
        "pravega-flow",
        "Pravega's Java client loses nothing through kills, and keeps the order while scaled",
        (*PYTEST, "tests/compat/test_pravega_flow.py"),
        "10 kills, 50,000 events and 300 transactions; 100,000 events",
        900,
        environment={"HUTCH_TEST_FACTOR": "10"},
        lane=Lane.WAITS,
        needs=(JAVA, MAVEN),
    ),
    Part(
        "spark",
        "the data source holds in Spark, on Hutch and on RabbitMQ",
        make("spark-both"),
        "all tests",
        1_500,
        needs=(JAVA,),
    ),
    Part(
        "spark-chaos",
        "kills of each kind lose and double no row of a query",
        make("spark-chaos", "ARGS=--short"),
        "all cases, with few rows",
        2_400,  # it runs beside what computes
        lane=Lane.WAITS,
        needs=(JAVA,),
    ),
    Part(
        "spark-cluster",
        "the same on a master and two workers, and by Spark Connect",
        make("spark-cluster"),
        "all tests",
        600,
        needs=(JAVA,),
    ),
    Part(
        "spark-oldest",
        "the oldest Spark that will do makes a round trip, and runs a job from the archive",
        make("test-oldest-spark"),
        "all tests",
        300,
        needs=(JAVA,),
    ),
    _suite("java", 2_400),
    *(_suite(name, 900) for name in ("go", "rust", "node", "rstream")),
    *map(_root, ("bookworm", "trixie", "testing")),
    Part(
        "bench",
        "each row is measured beside RabbitMQ and Pravega",
        make("bench", "ARGS=--rounds 1 --page build/benchmarks.md"),
        "one round of all rows",
        2_400,
        lane=Lane.ALONE,
    ),
    Part(
        "bench-spark",
        "each row of Spark is measured beside its own files",
        make("bench-spark", "ARGS=--rounds 1"),
        "one round of all rows",
        900,
        lane=Lane.ALONE,
        needs=(JAVA,),
    ),
)
"""At most 100 minutes on two cores."""

LONG: Final = (
    Part(
        "search-long",
        "as search",
        (*PYTEST, *PARALLEL, *SEARCHES),
        "5,000 examples of each property",
        4 * 3_600,
        environment={"HYPOTHESIS_PROFILE": "long"},
    ),
    Part(
        "damage-long",
        "as damage",
        module("tests.damage", "--state", f"{STATE}/damage.json"),
        "20,000 damaged places",
        8 * 3_600,
    ),
    Part(
        "frames-long",
        "as frames",
        module("tests.integration.network_fuzz", "--state", f"{STATE}/fuzz/network.json"),
        "ten million frames",
        8 * 3_600,
    ),
    Part(
        "chaos-long",
        "as spark-chaos, with a million rows",
        make("spark-chaos"),
        "all cases",
        4 * 3_600,
        needs=(JAVA,),
    ),
    Part(
        "sequences-long",
        "as sequences",
        module("compat.differential.generated", "--state", f"{STATE}/differential.json"),
        "100,000 sequences",
        8 * 3_600,
    ),
    Part(
        "filter-rates",
        "no filter value that is there is missed",
        module("tests.property.gateway.filter_rates", "--state", f"{STATE}/filter-rates.json"),
        "ten million look-ups",
        4 * 3_600,
    ),
    Part(
        "schedules",
        "no publishing id is stored twice, whatever the restarts",
        module("tests.property.gateway.dedup_schedules", "--state", f"{STATE}/fuzz/schedules.json"),
        "10,000 schedules",
        4 * 3_600,
    ),
    Part(
        "password-times",
        "a refused login does not tell why by its time",
        module("tests.property.gateway.password_times", "--state", f"{STATE}/password-times.json"),
        "10,000 logins of each kind",
        4 * 3_600,
    ),
)
"""Parts that take hours; each goes on where it was stopped."""
