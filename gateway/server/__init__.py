"""Sockets and time, on asyncio: listeners, TLS, connections, delivery, turns and timers."""
