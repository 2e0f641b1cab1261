"""A server put together: what is behind the ports, its process, and the ports it may have."""
