"""Neuron matching: OT-Fusion, Git Re-Basin, matching by activations, PFNM (`method.py`)."""

