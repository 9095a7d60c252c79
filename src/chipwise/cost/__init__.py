"""What a run or a service really costs: on demand, committed, on spot and owned, with the range of each."""
