"""What a user may see of their own jobs: a server that knows who asks by MUNGE, and its client. Both run on nodes."""
