"""Gaussian heads in the classroom: the lab, its views and their plots."""
