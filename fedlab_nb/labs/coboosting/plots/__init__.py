"""The pictures of Co-Boosting's lab."""
