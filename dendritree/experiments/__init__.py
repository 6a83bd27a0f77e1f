"""The paper's experiments as data: specs, protocols, the runner, and the store that keeps every trial."""
