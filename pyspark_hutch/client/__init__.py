"""The servers behind a query: a pool of connections, where streams live, one range of a stream."""
