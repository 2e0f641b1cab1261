"""Access to segments: whose they are, tokens, and the rights that they give."""
