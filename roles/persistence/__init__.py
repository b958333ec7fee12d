"""persistence: nvidia-persistenced keeps the GPUs initialised, so that no job waits for it and no setting is lost."""
