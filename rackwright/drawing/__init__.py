"""Racks and switches as pages of HTML with SVG, from a small typed picture. Knows no cluster, no role and no service."""
