"""`dendritree reproduce`: the paper's experiments."""
