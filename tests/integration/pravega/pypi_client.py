"""Writes and reads events with PyPI's client of Pravega, in a process of its own.

The client takes its user from the environment, once in the life of a process.

    write SCOPE STREAM EVENT…            makes scope and stream if need be, writes events
    append SCOPE STREAM EVENT…           writes events
    read GROUP_SCOPE SCOPE STREAM COUNT  reads by a group of readers; prints a line of hex each as
                                         it comes
    bytes SCOPE STREAM ACTION…           does to a stream of bytes what the actions say, in order:
                                         `write:TEXT`, `truncate:OFFSET`, `seal`, or `read:COUNT`,
                                         which prints a line of hex
"""

import asyncio
import os
import sys
from typing import Any

import pravega_client  # type: ignore[import-untyped]

Manager = Any  # the client has no types
Reader = Any
START = False
"""Where a group begins to read; True is the tail."""


def main() -> None:
    uri, action, *arguments = sys.argv[1:]
    is_tls = uri.startswith("tls")
    manager = pravega_client.StreamManager(uri, auth_enabled=True, tls_enabled=is_tls)
    if action == "write":
        write(manager, *arguments)
    elif action == "append":
        append(manager, *arguments)
    elif action == "bytes":
        handle_bytes(manager, *arguments)
    else:
        group_scope, scope, stream, count = arguments
        config = pravega_client.StreamReaderGroupConfig(START, scope, stream)
        group = manager.create_reader_group_with_config("group", group_scope, config)
        asyncio.run(read(group.create_reader("reader"), int(count)))
    sys.stdout.flush()
    os._exit(0)  # the client's threads go on, and crash now and then when Python takes itself down


def write(manager: Manager, scope: str, stream: str, *events: str) -> None:
    manager.create_scope(scope)
    manager.create_stream(scope, stream, 1)
    append(manager, scope, stream, *events)


def append(manager: Manager, scope: str, stream: str, *events: str) -> None:
    writer = manager.create_writer(scope, stream)
    for event in events:
        writer.write_event(event)
    writer.flush()


def handle_bytes(manager: Manager, scope: str, name: str, *actions: str) -> None:
    stream = manager.create_byte_stream(scope, name)
    for action, _, value in (each.partition(":") for each in actions):
        if action == "write":
            stream.write(value.encode())
            stream.flush()
        elif action == "truncate":
            stream.truncate(int(value))
        elif action == "seal":
            stream.seal()
        else:
            data = bytearray(int(value))
            stream.seek(stream.current_head_offset(), 0)
            size = stream.readinto(data)
            sys.stdout.write(f"{data[:size].hex()}\n")


async def read(reader: Reader, count: int) -> None:
    found = 0
    while found < count:
        part = await reader.get_segment_slice_async()
        if part is not None:
            for event in part:
                found += 1
                sys.stdout.write(f"{bytes(event.data()).hex()}\n")
                sys.stdout.flush()
            reader.release_segment(part)
    reader.reader_offline()


if __name__ == "__main__":
    main()
