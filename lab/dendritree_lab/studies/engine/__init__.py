"""The basis of every study: trials, the store that keeps them, the runner, statistics."""
