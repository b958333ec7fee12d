"""Facts of a node in one execution: the questions of earlier runs, their answers, the helper that runs there."""
