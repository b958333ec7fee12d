"""The node below the applications, on virtual machines."""
