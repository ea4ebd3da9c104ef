"""What runs in a browser without a notebook: the page without Python, and the class."""
