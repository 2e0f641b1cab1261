"""Arguments of streams, and the policies that add to them."""
