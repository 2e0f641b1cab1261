"""Work that the controller does by itself, as the policies of streams say."""
