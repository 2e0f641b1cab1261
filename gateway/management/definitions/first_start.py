"""The definitions that a setting names for the very first start.

What they hold must all be there before the first client is, also if the process dies on the way:
that an import has begun is written down, and the next start goes on with it.

    f    "begun" or "done"
"""

import logging
from pathlib import Path
from typing import Final

from gateway.broker.access.authentication import GUEST
from gateway.broker.access.model import User
from gateway.broker.access.users_file import DEFAULT_VIRTUAL_HOST
from gateway.broker.first_file import FirstFile
from gateway.broker.kept_table import KeptTable
from gateway.log.names import server_table
from gateway.management.administration import Administration
from gateway.management.definitions.document import BYTES_MAX
from gateway.management.definitions.importing import import_read
from gateway.management.definitions.planning import plan_import
from gateway.management.definitions.reading import ReadDefinitions, read_with_problems
from gateway.management.definitions.report import ImportOutcome
from gateway.management.errors import AdministrationError, DefinitionsError
from gateway.management.kinds.kind import Definitions
from gateway.management.kinds.people import USERS
from gateway.management.kinds.virtual_hosts import HOSTS, Host
from gateway.settings.errors import ConfigError
from store.api import SegmentStore

log = logging.getLogger(__name__)

_STATE: Final = b"f"
_BEGUN: Final = b"begun"
_DONE: Final = b"done"
_SETTING: Final = "definitions.file"


class FirstStart:
    """The import of definitions before the first client is served, and the record that it is done.

    Attributes:
        is_given_up: An earlier start began to import a file, and now none is named.
    """

    def __init__(self, store: SegmentStore, file: Path | None) -> None:
        self._kept = KeptTable(store, server_table("definitions"))
        self._file = None if file is None else FirstFile(store, _SETTING, file)
        self._path = file
        self.is_given_up = False

    async def begin(self, *, is_fresh: bool) -> ReadDefinitions | None:
        """Read the file if this is the first start, or the first that was not cut off.

        Args:
            is_fresh: Nothing was ever kept of users.

        Returns:
            What to import with `finish`; None if there is nothing to do.

        Raises:
            ConfigError: The file cannot be read. Nothing was written down.
            StoreError: The store refused.
        """
        state = (await self._kept.load()).get(_STATE)
        if not is_fresh and state != _BEGUN:
            if self._file is not None and not await self._file.is_unchanged():
                log.warning(
                    "definitions file is ignored, it is not the one of the first start:"
                    " hutch import takes it file=%s",
                    self._path,
                )
            return None
        if self._file is None:
            if state == _BEGUN:
                self.is_given_up = True
                log.warning("definitions of the first start are not all imported")
            return None
        read = self._read(self._file)
        await self._file.note()
        await self._kept.write({_STATE: _BEGUN})
        return read

    async def finish(self, administration: Administration, read: ReadDefinitions) -> None:
        """Import, and write down that it is done.

        Raises:
            ConfigError: The definitions have faults or refer to what is not there, or the server
                could not do it.
            StoreError: The store refused. In each case the next start goes on.
        """
        try:
            plan = await import_read(administration, read, dry_run=False)
        except DefinitionsError as error:
            raise _unusable(self._path, error) from error
        except AdministrationError as error:
            raise ConfigError.in_file(_SETTING, self._path, str(error)) from error
        for row in plan.rows:
            if row.outcome is not ImportOutcome.IMPORTED:
                log.info(
                    "definition %s kind=%s virtual_host=%r name=%r reason=%s",
                    row.outcome.value,
                    row.kind,
                    row.virtual_host,
                    row.name,
                    row.reason,
                )
        await self._kept.write({_STATE: _DONE})

    def _read(self, file: FirstFile) -> ReadDefinitions:
        try:
            read = read_with_problems(file.read(BYTES_MAX + 1))
            if read.problem_count:  # told together with what is wrong between its objects
                plan_import(read, _fresh())
            return read  # noqa: TRY300  # what raises is above
        except OSError as error:
            reason = f"cannot read it: {error.strerror}"
            raise ConfigError.in_file(_SETTING, self._path, reason) from None
        except DefinitionsError as error:
            raise _unusable(self._path, error) from error


def _fresh() -> Definitions:
    """Return what every server has before its first start."""
    return Definitions(
        {
            HOSTS: {("", DEFAULT_VIRTUAL_HOST): Host(DEFAULT_VIRTUAL_HOST)},
            USERS: {("", GUEST): User(GUEST, None)},
        }
    )


def _unusable(file: Path | None, error: DefinitionsError) -> ConfigError:
    return ConfigError.in_file(_SETTING, file, *str(error).splitlines())
