"""The part of the protocol that touches every byte of a long list; compiled by Cython."""
