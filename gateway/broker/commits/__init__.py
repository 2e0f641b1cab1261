"""Commits of a virtual host: records that are staged, then published in several streams as one."""
