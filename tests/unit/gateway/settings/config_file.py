"""A file of settings for tests."""

from pathlib import Path


def config_file(folder: Path, content: str) -> str:
    """Write a file of settings; return its path."""
    path = folder / "hutch.toml"
    path.write_text(content, encoding="utf-8")
    return str(path)
