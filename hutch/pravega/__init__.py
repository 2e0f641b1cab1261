"""The wire protocol of Pravega's segment store: one table of commands, and its codec."""
