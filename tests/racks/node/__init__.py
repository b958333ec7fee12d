"""One virtual machine for each part of what lies below the applications."""
