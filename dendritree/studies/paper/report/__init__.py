"""The report of a reproduction: the paper's tables beside ours."""
