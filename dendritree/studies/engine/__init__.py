"""What every study stands on: trials, the store that keeps them, the runner, statistics."""
