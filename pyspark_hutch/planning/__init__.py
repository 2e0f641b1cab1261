"""Plans: a query's range of offsets becomes tasks."""
