"""Periodic work beside serving: retention, and a check for disk space."""
