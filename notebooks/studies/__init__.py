"""The studies behind the figures in the texts: what they run, what is computed from the runs, where it is put."""
