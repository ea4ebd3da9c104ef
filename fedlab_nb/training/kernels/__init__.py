"""The fast paths of local training: many networks as one. Skip this
folder on a first reading: `training/loop.py` does the same."""
