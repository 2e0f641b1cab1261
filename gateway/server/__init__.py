"""The only asyncio: listeners, connections, delivery, start and stop."""
