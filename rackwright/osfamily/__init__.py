"""What differs between operating-system families and their releases."""
