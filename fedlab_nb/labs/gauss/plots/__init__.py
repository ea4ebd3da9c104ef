"""The pictures of the Gaussian heads' lab."""
