"""Connections of Spark's processes: their names have application, query and task where known."""

import os

from pyspark import TaskContext

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.options.connection_settings import BrokerSettings

_BYTES_MAX = 200


def planner_cluster(settings: BrokerSettings, *, retries_first: bool = False) -> Cluster:
    """Return the servers as a process of the driver asks them; see `Cluster`."""
    return Cluster(settings, planner_name(settings), retries_first=retries_first)


def task_cluster(settings: BrokerSettings) -> Cluster:
    """Return the servers as the task of this process asks them, with patience."""
    return Cluster(settings, task_name(settings), retries_first=True)


def planner_name(settings: BrokerSettings) -> Name:
    """Return the name of a connection that plans a query; Spark tells a planner nothing."""
    return Name(_cut(settings.connection_name or "spark"), f"planner pid {os.getpid()}")


def task_name(settings: BrokerSettings) -> Name:
    """Return the name of a connection that the task of this process opens."""
    context = TaskContext.get()
    if context is None:
        return Name(_cut(settings.connection_name or "spark"), f"pid {os.getpid()}")
    application = settings.connection_name or _property(context, "spark.app.name") or "spark"
    query = _property(context, "sql.streaming.queryId")
    if query is not None:
        query = f"query {query[:8]}"
    else:
        query = f"execution {_property(context, 'spark.sql.execution.id') or '?'}"
    task = f"{context.stageId()}.{context.partitionId()}.{context.attemptNumber()}"
    return Name(f"{_cut(application)}/{query}", f"task {task} pid {os.getpid()}")


def _property(context: TaskContext, key: str) -> str | None:
    value: str | None = context.getLocalProperty(key)
    return value


def _cut(text: str) -> str:
    return text.encode()[:_BYTES_MAX].decode(errors="ignore")
