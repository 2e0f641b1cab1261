"""The rows that a stream gives: names, types and meanings of their columns."""
