"""Sends the same frames of Pravega's wire protocol to a real Pravega 0.13.0 and to Hutch."""
