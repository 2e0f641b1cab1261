"""Bytes of mewbase's protocol: frames in, frames out; no I/O and no state."""
