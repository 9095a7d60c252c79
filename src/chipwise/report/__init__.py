"""A decision on one page and what it rests on: one HTML file that needs nothing else, or a PDF."""
