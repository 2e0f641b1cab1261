"""Parts that follow from chunks: indexes, filters, sequences, and snapshots of them."""
