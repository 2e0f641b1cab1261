"""The servers behind a query: a pool of connections, places of streams, one range of a stream."""
