"""The pictures of FedLPA's lab."""
