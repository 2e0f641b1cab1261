"""Programs on Pravega's Java client, on a real Pravega and on Hutch."""
