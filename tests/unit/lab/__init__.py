"""What of the lab can be tested without booting a rack."""
