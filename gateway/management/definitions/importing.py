"""Definitions compared with the server and brought into it, now or by the next start."""

import logging
from functools import partial

from gateway.broker.locks import Check, unchecked
from gateway.management.administration import Administration, RequestTurns
from gateway.management.definitions.applying import (
    Before,
    ImportStopped,
    apply_changes,
    remember,
    take_back,
)
from gateway.management.definitions.planning import ImportPlan, plan_import
from gateway.management.definitions.reading import ReadDefinitions, read_definitions
from gateway.management.definitions.report import sums
from gateway.management.definitions.unfinished import ImportSource, UnfinishedImport
from gateway.management.errors import (
    PROBLEMS_SHOWN_MAX,
    AdministrationError,
    DefinitionsError,
    Failed,
    shown,
)
from gateway.management.kinds import table
from gateway.management.kinds.kind import Definitions
from store.errors import StoreError

log = logging.getLogger(__name__)


async def import_read(
    administration: Administration,
    read: ReadDefinitions,
    *,
    dry_run: bool,
    is_whole: bool = False,
    source: ImportSource | None = None,
    check: Check = unchecked,
) -> ImportPlan:
    """Compare definitions with the server, and make it so; all or nothing.

    Args:
        administration: What is changed.
        read: The definitions.
        dry_run: Only compare.
        is_whole: Refuse what cannot all be imported, where RabbitMQ could.
        source: What they were read from, for the next start to finish what this one may not;
            None if that is taken care of.
        check: Called in the turn; what it raises ends this.

    Raises:
        DefinitionsError: They cannot be imported.
        Failed: The server could not do it.
    """
    turn = administration.importing
    await turn.take()
    try:
        check()
        current = await current_definitions(administration)
        plan = await administration.in_thread(
            partial(plan_import, read, current, partitions_max=administration.partitions_max)
        )
        if is_whole:
            _demand_all(plan)
        if not dry_run:
            await _apply(administration, plan, source)
    finally:
        turn.end()
    if not dry_run:
        log.info("definitions imported changes=%d objects=%s", plan.change_count, sums(plan.rows))
    return plan


def _demand_all(plan: ImportPlan) -> None:
    """Demand that no row is left out whose absence loses something. Raises DefinitionsError."""
    lost = [row for row in plan.rows if row.is_lost]
    if lost:
        lines = (
            f"{row.kind} {shown(row.name)} in virtual host {shown(row.virtual_host)}: {row.reason}"
            for row in lost[:PROBLEMS_SHOWN_MAX]
        )
        raise DefinitionsError(*lines, count=len(lost))


async def _apply(
    administration: Administration, plan: ImportPlan, source: ImportSource | None
) -> None:
    before = await remember(administration, plan.changes)
    unfinished = administration.unfinished if source is not None and plan.change_count else None
    if source is not None and unfinished is not None:
        packed = await administration.in_thread(before.pack)
        await unfinished.begin(source._replace(before=packed))
    try:
        await apply_changes(administration, plan.changes, before)
    except ImportStopped as stopped:
        raise Failed(f"not all was imported: {stopped}; its next start goes on") from stopped
    except Failed:
        await _forget(unfinished)
        raise
    await _forget(unfinished)


async def _forget(unfinished: UnfinishedImport | None) -> None:
    """Let no later start do it again."""
    try:
        if unfinished is not None:
            await unfinished.end()
    except StoreError as error:  # what was asked for has its own outcome
        log.error("the next start will import the same once more error=%s", error)  # noqa: TRY400


async def finish_import(administration: Administration, unfinished: UnfinishedImport) -> None:
    """Finish the import that was under way when the server died or stopped, if there was one.

    What was done of it is left alone, and nothing has been changed since. One that cannot be
    finished is rolled back. Raises StoreError.
    """
    source = await unfinished.load()
    if source is None:
        return
    read = partial(read_definitions, source.content, virtual_host=source.virtual_host)
    try:
        plan = await import_read(
            administration, await administration.in_thread(read), dry_run=False
        )
    except (DefinitionsError, AdministrationError) as error:
        log.error("the import that was cut off cannot be finished error=%s", error)  # noqa: TRY400
        if administration.importing.is_over:  # it could have been
            return
        if not await take_back(administration, Before.unpack(source.before)):
            log.error("the next start tries again to finish the import or to take it back")  # noqa: TRY400
            return
        log.warning("the import that was cut off is taken back: nothing of it is there")
    else:
        log.warning("an import that was cut off is finished changes=%d", plan.change_count)
    await unfinished.end()


async def current_definitions(administration: Administration) -> Definitions:
    """Return everything that definitions can hold. Nothing changes the values.

    Others have their turn meanwhile: what is made or goes then may be there or not.
    """
    found = Definitions()
    turns = RequestTurns(administration)
    for kind in table.KINDS:
        things = found.of(kind)
        for key, thing in kind.all(administration):
            things[key] = thing
            await turns.give()
    return found
