"""A function a command."""
