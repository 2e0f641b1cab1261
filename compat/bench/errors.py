"""Errors of a benchmark."""


class BenchError(Exception):
    """The benchmark could not measure: a server, the generator or the surroundings failed."""


class CheckFailed(BenchError):
    """A server answered, and what it sent is not what was published or asked for."""
