"""The streams of a query, and its start and end in each."""
