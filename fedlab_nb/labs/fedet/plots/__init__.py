"""The pictures of Fed-ET's lab."""
