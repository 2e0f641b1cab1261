"""Pravega's wire protocol, as a front: clients write to the segment store and read it back."""
