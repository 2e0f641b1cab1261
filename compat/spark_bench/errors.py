"""Errors that end the benchmark."""


class SparkBenchError(Exception):
    """The benchmark cannot go on; says in one line why."""
