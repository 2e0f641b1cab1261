"""Streams: their table, their segments and logs, and what keeps and removes their records."""
