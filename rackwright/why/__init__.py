"""The state of one node explained: scheduler, health, declaration, changes, kernel log, next step."""
