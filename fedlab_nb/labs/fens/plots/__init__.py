"""The pictures of FENS' lab."""
