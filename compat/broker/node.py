"""A RabbitMQ node that runs in the Debian tree, shut into namespaces of its own.

Its mounts live in a mount namespace and its processes in a process namespace, so that nothing is
left when the outermost process ends, however it ends: no mount, no port mapper, no helper.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from compat.broker import records, settings
from compat.broker.ports import Ports
from compat.broker.processes import (
    descendants,
    described,
    erlang_machine,
    members,
    namespace_of,
    start_ticks,
)
from compat.broker.records import Process, Record
from compat.broker.running import NotEnded, NotReady, await_serving
from compat.debian import SHUT_IN

ADDRESS = "127.0.0.1"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 15
END_TIMEOUT_S = 60
CONTROL_TIMEOUT_S = 60
POLL_S = 0.05
# Streams cost several open files each and the 1,000-stream work needs them all at once.
OPEN_FILES = 65_536
HOME_INSIDE = "/srv"
CERTIFICATES = "certificates"
# $1 tree, $2 the broker's folder. Becomes process 1 of its namespace by the last line.
ENTER = f"""
mount --bind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount --bind "$2/home" "$1{HOME_INSIDE}"
exec chroot --userspec=rabbitmq:rabbitmq "$1" /bin/sh -c '
    epmd -address {ADDRESS} -port "$ERL_EPMD_PORT" &
    exec /usr/lib/rabbitmq/bin/rabbitmq-server'
"""

# What this process started itself, to be waited for: an ended child stays listed until then.
children: dict[int, subprocess.Popen[bytes]] = {}


def start(tree: Path, name: str, ports: Ports, *, owner: Process | None) -> Record:
    """Start a node and wait until it serves (about 4 s).

    Args:
        tree: The Debian tree, from `tree.tree`.
        name: The broker's name; empty picks one.
        ports: Its ports, none of them 0.
        owner: The process with which it shall end, None to leave it running.

    Raises:
        NotReady: It ended or served nothing in time; what it printed comes with it.
        FileExistsError: A broker of that name is recorded.
    """
    name, folder = records.new_folder(name)
    shutil.copytree(records.certificates_of(name).folder, folder / "home" / CERTIFICATES)
    write_settings(tree, folder / "home", ports)
    record = Record(name=name, way="chroot", ports=ports, owner=owner)
    try:
        return launch(tree, record)
    except NotReady as error:
        printed = (folder / "server.log").read_text(errors="replace").strip()
        stop(records.load(name) or record)
        raise NotReady(f"{error}; it printed: {printed[-400:] or 'nothing'}") from error


def launch(tree: Path, record: Record) -> Record:
    """Start the node of a record on what its folder has, and wait until it serves.

    Returns:
        The record with the process, saved.

    Raises:
        NotReady: It ended or served nothing in time.
    """
    folder = records.folder_of(record.name)
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [*SHUT_IN, "sh", "-eu", "-c", ENTER, "enter", str(tree), str(folder)],
            cwd="/",
            env=environment(record.ports),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    children[process.pid] = process
    ticks = start_ticks(process.pid)
    runner = Process(pid=process.pid, start_ticks=ticks) if ticks is not None else None
    record = replace(record, runner=runner)
    records.save(record)
    await_serving(
        ADDRESS, record.ports, timeout_s=START_TIMEOUT_S, is_alive=lambda: process.poll() is None
    )
    return record


def crash(tree: Path, record: Record) -> None:
    """End a node by SIGKILL, and start it on what it has written."""
    end_by_force(record)
    launch(tree, record)


def write_settings(tree: Path, home: Path, ports: Ports) -> None:
    """Write the node's settings into its home, which becomes the broker user's own."""
    inside = f"{HOME_INSIDE}/{CERTIFICATES}"
    text = settings.configuration(
        ports, advertised_port=ports.stream, address=ADDRESS, certificates=inside
    )
    (home / "rabbitmq.conf").write_text(text)
    (home / "enabled_plugins").write_text(settings.enabled_plugins())
    owner, group = broker_user(tree)
    for path in (home, *home.rglob("*")):
        os.chown(path, owner, group)


def broker_user(tree: Path) -> tuple[int, int]:
    """Return the user and group id of `rabbitmq` inside the tree."""
    for line in (tree / "etc/passwd").read_text().splitlines():
        user, _, user_id, group_id, *_ = line.split(":")
        if user == "rabbitmq":
            return int(user_id), int(group_id)
    raise AssertionError("the package rabbitmq-server makes the user rabbitmq")


def environment(ports: Ports) -> dict[str, str]:
    """Return the whole environment of the node: nothing of ours leaks into it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": HOME_INSIDE,
        "ERL_EPMD_PORT": str(ports.epmd),
        "ERL_EPMD_ADDRESS": ADDRESS,
        "RABBITMQ_CONF_ENV_FILE": f"{HOME_INSIDE}/none",
        "RABBITMQ_CONFIG_FILE": f"{HOME_INSIDE}/rabbitmq.conf",
        "RABBITMQ_DIST_PORT": str(ports.distribution),
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{HOME_INSIDE}/enabled_plugins",
        "RABBITMQ_LOG_BASE": f"{HOME_INSIDE}/log",
        "RABBITMQ_MAX_OPEN_FILES": str(open_files),
        "RABBITMQ_MNESIA_BASE": f"{HOME_INSIDE}/data",
        "RABBITMQ_NODENAME": settings.NODE_NAME,
    }


def stop(record: Record) -> None:
    """End a node: politely first, then by force; remove its folder."""
    runner = record.runner
    if runner is not None and runner.is_running():
        for child in descendants(runner.pid)[:1]:
            send(child, signal.SIGTERM)
        has_ended(runner, STOP_TIMEOUT_S)
    end_by_force(record)
    records.forget(record.name)


def end_by_force(record: Record) -> None:
    """End a node by SIGKILL if it still runs, and wait until its ports are free.

    Raises:
        NotEnded: A process of it did not end in time; the message names it.
    """
    runner = record.runner
    if runner is None:
        return
    if runner.is_running():
        inside = [(pid, start_ticks(pid)) for pid in descendants(runner.pid)]
        # Process 1 of the namespace takes all others along. The end of its parent does not end it:
        # it has become another user's.
        first = inside[0][0] if inside else runner.pid
        namespace = namespace_of(first)
        send(first, signal.SIGKILL)
        for pid, ticks in (*inside, (runner.pid, runner.start_ticks)):
            if ticks is not None:
                await_end(Process(pid=pid, start_ticks=ticks), namespace)
    if (child_process := children.pop(runner.pid, None)) is not None:
        child_process.wait(END_TIMEOUT_S)


def await_end(process: Process, namespace: str) -> None:
    """Wait for a killed process, and reap what of its namespace this process has adopted.

    A command beside the node is orphaned if it is given up: its caller may have to reap it, and a
    namespace ends only when all of its processes are reaped.

    Raises:
        NotEnded: It did not end in time; the message names it and what is left in the namespace.
    """
    deadline = time.monotonic() + END_TIMEOUT_S
    while process.is_running():
        left = [] if namespace == namespace_of(os.getpid()) else members(namespace)
        for pid in left:
            with suppress(ChildProcessError):  # another's child
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            named = ", ".join(map(described, dict.fromkeys((process.pid, *left))))
            raise NotEnded(f"not ended within {END_TIMEOUT_S} s of SIGKILL: {named}")
        time.sleep(POLL_S)


def control(tree: Path, record: Record, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run `rabbitmqctl` beside a node, in the node's own namespaces."""
    assert record.runner is not None
    inside = descendants(record.runner.pid)[0]
    return subprocess.run(
        [
            *("nsenter", f"--target={inside}", "--mount", "--pid"),
            *("chroot", "--userspec=rabbitmq:rabbitmq", str(tree)),
            *("/usr/lib/rabbitmq/bin/rabbitmqctl", *words),
        ],
        cwd="/",
        env=environment(record.ports),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=CONTROL_TIMEOUT_S,
        check=False,
    )


def send(pid: int, which: signal.Signals) -> None:
    """Send a signal to a process that may just have ended."""
    try:
        os.kill(pid, which)
    except ProcessLookupError:
        return


def has_ended(process: Process, timeout_s: float) -> bool:
    """Wait for a process to end; False if it still runs after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while process.is_running():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def machine_of(record: Record) -> int | None:
    """Return the process id of the node's Erlang machine, None if it has ended."""
    return None if record.runner is None else erlang_machine(record.runner.pid)
