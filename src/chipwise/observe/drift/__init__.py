"""Since when runs take another time than before, and what changed then."""
