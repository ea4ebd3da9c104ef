"""The pictures of FuseFL's lab."""
