"""Pictures of AFL's lab: numbers in; a figure, its words and its table out."""
