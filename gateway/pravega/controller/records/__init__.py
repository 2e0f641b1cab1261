"""Everything that the controller keeps: its records, in memory and in its table."""
