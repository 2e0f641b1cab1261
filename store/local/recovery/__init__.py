"""Recovery: a checkpoint and the journal behind it, and the damage in them."""
