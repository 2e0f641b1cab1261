"""The early dialect of Pravega's wire protocol, on a port of its own."""
