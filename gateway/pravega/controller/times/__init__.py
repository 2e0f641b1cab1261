"""Times of the events of a stream, as its writers tell them and as its readers ask for them."""
