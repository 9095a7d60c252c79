"""Does this program train in that precision? The same seeds in each, compared with fp32 by a test over seeds."""
