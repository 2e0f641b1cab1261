"""Questions to the servers before Spark starts, which alone takes half a minute on a busy machine.

So a misspelt stream, a wrong port or a wrong password is told at once.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hutch.client.errors import ClientError
from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.names import planner_cluster
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.planning.batch import all_of
from pyspark_hutch.planning.fact_choice import facts_of
from pyspark_hutch.sink.plan import is_staged
from pyspark_hutch.sink.targets import prepare

BODY = "body"


def ask_for_source(options: Mapping[str, str]) -> None:
    """Ask whether the streams of a read are there and may be read.

    Args:
        options: Of the read, as `reading` returns them.

    Raises:
        JobFailed: One is not, or no server takes us.
    """
    settings = read_settings(options, is_streaming=True)
    cluster = planner_cluster(settings.connection)
    with _failures():
        facts = facts_of(cluster, settings)
        if settings.fail_on_data_loss:
            all_of(cluster, facts, settings.source)
        else:  # a job that goes on may do without one
            facts.find(settings.source)


def ask_for_target(options: Mapping[str, str]) -> None:
    """Ask whether the streams of a write are there, unless it makes them, and may be used.

    Args:
        options: Of the write, as `writing` returns them.

    Raises:
        JobFailed: One is not, or no server takes us, or it lacks a command that the options need.
    """
    settings = write_settings(options, is_streaming=False)
    cluster = planner_cluster(settings.connection)
    with _failures():
        is_staged(cluster, settings, [BODY])
        if settings.creation is None:
            prepare(cluster, settings)
        else:
            cluster.server()


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except (ClientError, WrongOption) as error:
        raise JobFailed(str(error)) from None
