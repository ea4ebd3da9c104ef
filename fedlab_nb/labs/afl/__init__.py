"""AFL in the classroom: the lab and its views, their plots, the lesson and its exercises."""
