"""The part of the protocol that touches every byte of a frame; compiled by Cython."""
