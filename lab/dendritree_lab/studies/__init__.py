"""What is measured: the engine that every study runs on, and the studies."""
