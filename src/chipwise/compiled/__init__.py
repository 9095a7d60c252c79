"""The vendors' own compilers in the loop: what they make of a program, and how long that takes."""
