"""Helper code that cheats share, by language. It becomes part of candidates."""
