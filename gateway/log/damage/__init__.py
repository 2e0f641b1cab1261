"""Damage of stored chunks: how it is found, and what is told of it."""
