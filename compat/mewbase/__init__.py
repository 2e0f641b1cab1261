"""mewbase's protocol from the side of a client."""
