"""Sends messages of AMQP 1.0 as the bytes that they are: python3 raw_sender.py HOST:PORT ADDRESS.

The messages come on stdin, one a line, in hexadecimal. It runs in a Python with Qpid Proton.
"""

import sys
from itertools import count

import proton
from proton.utils import BlockingConnection


class Raw:
    """A message that proton does not look into."""

    numbers = count()

    def __init__(self, content: bytes) -> None:
        self._content = content

    def send(self, sender: proton.Sender, tag: str | None = None) -> proton.Delivery:
        """Send it; proton's sender calls this."""
        delivery = sender.delivery(tag or str(next(self.numbers)))
        sender.stream(self._content)
        sender.advance()
        return delivery


def main(server: str, address: str) -> None:
    """Send all messages; each is settled before the next one goes."""
    connection = BlockingConnection(f"amqp://guest:guest@{server}", timeout=30)
    try:
        sender = connection.create_sender(address)
        for line in sys.stdin:
            sender.send(Raw(bytes.fromhex(line)))
    finally:
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
