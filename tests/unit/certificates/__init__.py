"""The site's CA and what it issues."""
