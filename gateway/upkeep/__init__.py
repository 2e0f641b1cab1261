"""Work from time to time, beside serving: retention, and a look whether there is disk space."""
