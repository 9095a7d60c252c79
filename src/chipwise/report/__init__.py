"""A decision on one page and what it rests on: one self-contained HTML file, or a PDF."""
