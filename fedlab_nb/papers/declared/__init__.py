"""Declared studies: every number that a text, a panel, a table or a default rests on, and the runs that it comes from.

README.md says how to declare one. `python -m fedlab_nb.papers.declared` makes them and says whether they still hold.
"""
