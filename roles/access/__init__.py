"""Who may log in, and how: admin users, sudo, sshd, and logins from node to node without prompts."""
