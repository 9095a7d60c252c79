"""What `chipwise check` answers: does the program compile there, does it fit, how long does a step take."""
