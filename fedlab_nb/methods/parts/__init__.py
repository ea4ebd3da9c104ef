"""Machinery that several methods share, or that would make a method's own file too long. Nothing here registers."""
