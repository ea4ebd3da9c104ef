"""Pictures of the lab of distilled data: numbers in; a figure, its words and its table out."""
