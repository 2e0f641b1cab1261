"""State of the store in memory: segments, tables, attributes, and where their bytes lie."""
