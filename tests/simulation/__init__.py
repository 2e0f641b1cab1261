"""The whole store on a disk of memory that remembers every step and can be cut at any."""
