"""What is sick in a run, by what it printed: hung, slow, slower than it was, a straggling rank, a failing device."""
