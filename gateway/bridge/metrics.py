"""Pages for programs: Prometheus' metrics of the routes, and whether all is well."""

import json
import time
from collections.abc import Iterator, Sequence
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.bridge.lane import Lane

_COUNTERS: Final = {
    "taken": "Messages taken from the source, repeated ones too",
    "delivered": "Messages that the target has confirmed",
    "repeated": "Messages taken that are known to have come before",
    "refused": "Messages that the target does not take",
}
_GAUGES: Final = {
    "under_way": "Messages that are taken and not acknowledged",
    "waiting": "Messages at the source that are not taken; absent if it cannot tell",
    "is_connected": "1 if both ends are connected",
    "last_at": "Seconds since a message was taken; absent before the first",
}
_NAMES: Final = {"is_connected": "connected", "last_at": "last_message_seconds"}


class Metrics(Collector):
    """Serves `/metrics` and `/health`."""

    def __init__(self, lanes: Sequence[Lane], host: str, port: int) -> None:
        """Listen. Raises OSError."""
        registry = CollectorRegistry()
        registry.register(self)
        self._lanes = lanes
        self._pages: Any = make_wsgi_app(registry)
        self._server: Final = make_server(host, port, self._answer, _Server, _Silent)
        self.port: Final = self._server.server_port
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Any) -> Any:  # noqa: ANN401  # WSGI's
        if environ["PATH_INFO"] != "/health":
            return self._pages(environ, start)
        away = [lane.route.name for lane in self._lanes if not lane.counts.is_connected]
        status = "503 Service Unavailable" if away else "200 OK"
        start(status, [("Content-Type", "application/json")])
        return [json.dumps({"status": "failed" if away else "ok", "not_connected": away}).encode()]

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as they are now."""
        for name, text in (_COUNTERS | _GAUGES).items():
            family: Any = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
            suffix = "_messages" if name in _COUNTERS else ""
            full = f"hutch_bridge_{_NAMES.get(name, name)}{suffix}"
            found = family(full, text, labels=["route"])
            for lane in self._lanes:
                value = getattr(lane.counts, name)
                if value is not None:
                    value = time.monotonic() - value if name == "last_at" else value
                    found.add_metric([lane.route.name], value)
            yield found


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each client in a thread, so that a silent one holds up neither others nor the end."""

    daemon_threads = True


class _Silent(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401  # the base's
        pass
