"""Reading /proc: which process is the Erlang machine, and what has it used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ERLANG_COMMAND = "beam.smp"
# Places in /proc/PID/stat counted from behind the command's closing bracket (proc(5), fields 3 on).
STAT_PARENT = 1
STAT_USER_TICKS = 11
STAT_SYSTEM_TICKS = 12
STAT_START_TICKS = 19


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a process has used so far."""

    cpu_s: float
    resident_bytes: int


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat that follow the command, None if there is no such one."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command is free text in brackets, so the last bracket is the only safe mark.
    return text[text.rindex(")") + 2 :].split()


def start_ticks(pid: int) -> int | None:
    """Return when the process began, in clock ticks since boot; None if there is none.

    Together with its id this names a process for good: ids are used again.
    """
    stat = stat_fields(pid)
    return None if stat is None or stat[0] == "Z" else int(stat[STAT_START_TICKS])


def usage(pid: int) -> Usage | None:
    """Return the CPU seconds and resident bytes of a process, None if there is no such one."""
    stat = stat_fields(pid)
    if stat is None:
        return None
    try:
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
    ticks = int(stat[STAT_USER_TICKS]) + int(stat[STAT_SYSTEM_TICKS])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


def descendants(pid: int) -> list[int]:
    """Return the ids of the process's children, their children and so on, parents first."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := stat_fields(int(entry.name))) is not None:
            children.setdefault(int(stat[STAT_PARENT]), []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for child in found:  # grows while it is walked
        found.extend(children.get(child, ()))
    return found


def namespace_of(pid: int) -> str:
    """Return the process namespace of a process; empty if there is no such process."""
    try:
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def members(namespace: str) -> list[int]:
    """Return the ids of all processes of a process namespace, also those that only lack a wait."""
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if namespace and namespace_of(pid) == namespace]


def described(pid: int) -> str:
    """Return what an error says of a process: its id, command, state and parent."""
    stat = stat_fields(pid)
    if stat is None:
        return f"process {pid}"
    command = (PROC / str(pid) / "comm").read_text().strip()
    return f"process {pid} ({command}, state {stat[0]}, child of {stat[STAT_PARENT]})"


def erlang_machine(pid: int) -> int | None:
    """Return the Erlang virtual machine at or beneath a process, None if there is none."""
    for candidate in [pid, *descendants(pid)]:
        try:
            command = (PROC / str(candidate) / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if command == ERLANG_COMMAND:
            return candidate
    return None
