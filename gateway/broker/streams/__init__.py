"""Streams: their table, their segments and logs, and the retention of their records."""
