"""Recovery: a checkpoint and the journal behind it, and what of it is damaged."""
