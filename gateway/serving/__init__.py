"""A server put together: the backend, its process, and the ports it may have."""
