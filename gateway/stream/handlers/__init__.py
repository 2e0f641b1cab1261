"""Handlers: one function for each command."""
