"""A decision, a fleet plan or a pools file as files that infrastructure tools apply, and as the router's pools file."""
