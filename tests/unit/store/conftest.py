"""Each test has a folder on the disk."""

from tests.folders import on_disk

__all__ = ["on_disk"]
