"""Answers on their way to a client, as far as its windows let them."""

from collections.abc import Iterable

from h2.connection import H2Connection
from h2.exceptions import StreamClosedError

_Fields = list[tuple[bytes, bytes]]


class OutgoingAnswers:
    """The answers of one connection."""

    def __init__(self, http: H2Connection) -> None:
        self._http = http
        self._left: dict[int, tuple[memoryview, _Fields]] = {}

    def calls(self) -> Iterable[int]:
        """Return the numbers of the calls whose answers are not sent yet."""
        return self._left

    def add(self, number: int, data: bytes, end: _Fields) -> None:
        """Send an answer and its trailers, now or as the client's windows allow."""
        self._left[number] = memoryview(data), end
        self._go_on(number)

    def go_on(self) -> None:
        """Send as much as there is room for now."""
        for number in list(self._left):
            self._go_on(number)

    def forget(self, number: int) -> None:
        """Drop an answer that is not wanted any more; fine if there is none."""
        self._left.pop(number, None)

    def _go_on(self, number: int) -> None:
        data, end = self._left[number]
        try:
            while data and (room := self._http.local_flow_control_window(number)) > 0:
                size = min(room, self._http.max_outbound_frame_size, len(data))
                self._http.send_data(number, data[:size].tobytes())
                data = data[size:]
            if not data:
                self._http.send_headers(number, end, end_stream=True)
        except StreamClosedError:
            data = data[:0]
        if data:
            self._left[number] = data, end
        else:
            del self._left[number]
