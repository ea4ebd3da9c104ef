"""Declared studies: the runs behind every number in a text, a panel or a table, and behind every default of a knob.

README.md explains how to declare one. `python -m fedlab_nb.papers.declared` runs what is missing, and says whether the
numbers still hold.
"""
