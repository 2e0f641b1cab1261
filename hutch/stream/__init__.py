"""Bytes to messages and back: the command table and its codec; no I/O."""
