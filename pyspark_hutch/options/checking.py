"""A first look at options, before it is known what they are for."""

from collections.abc import Mapping

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.option import READ, WRITE, Use
from pyspark_hutch.options.reading import read_settings
from pyspark_hutch.options.table import OPTIONS, is_sparks_own
from pyspark_hutch.options.writing import write_settings


def check_any(options: Mapping[str, str]) -> None:
    """Check options that could be for any read or write.

    Options of which some are only for reads must do for a read, and those with some that are only
    for writes for a write; with some of both, or none, either will do. Where all are Spark's own,
    nothing is missed: so is a table of a catalog read, whose options do not come with it.

    Raises:
        WrongOption: They would not do.
    """
    names = {name.lower() for name in options}
    if all(is_sparks_own(name) for name in names):
        return
    errors: list[WrongOption] = []
    for use in likely_uses(names):
        try:
            _settings(options, use)
        except WrongOption as error:
            errors.append(error)
        else:
            return
    raise min(errors, key=lambda error: len(error.problems))


def likely_uses(names: set[str]) -> Use:
    """Return what options can be for, by their names in lower case."""
    uses = [OPTIONS[name].uses for name in names if name in OPTIONS]
    reads, writes = any(use in READ for use in uses), any(use in WRITE for use in uses)
    if reads == writes:
        return READ | WRITE
    return READ if reads else WRITE


def _settings(options: Mapping[str, str], use: Use) -> object:
    if use in READ:
        return read_settings(options, is_streaming=use is Use.STREAMING_READ)
    return write_settings(options, is_streaming=use is Use.STREAMING_WRITE)
