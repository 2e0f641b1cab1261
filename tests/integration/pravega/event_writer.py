"""Writes numbered events with PyPI's client of Pravega, in a process of its own.

The client waits for its server without letting another thread of Python run.

Arguments: port of the controller, scope, stream, first number, number behind the last one, size of
a batch. A line with the next number is printed when a batch is acknowledged.
"""

import sys

import pravega_client  # type: ignore[import-untyped]


def main() -> None:
    port, scope, stream, *numbers = sys.argv[1:]
    first, end, batch = map(int, numbers)
    manager = pravega_client.StreamManager(f"tcp://127.0.0.1:{port}")
    writer = manager.create_writer(scope, stream)
    for begin in range(first, end, batch):
        for number in range(begin, min(begin + batch, end)):
            writer.write_event(f"{number:05}", routing_key="one")
        writer.flush()
        sys.stdout.write(f"{min(begin + batch, end)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
