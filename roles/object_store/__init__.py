"""S3 for users: the endpoint in their environment, rclone's remotes without secrets, and buckets mounted read-only."""
