"""Newer list prices: the public SkyPilot catalog fetched, checked, compared with the list in force, and kept."""
