"""t."""


class Table:
    """T."""

    def abort(self) -> None:
        """A."""
