"""Pictures of neuron matching: numbers in; a figure, its sentence and its table out."""
