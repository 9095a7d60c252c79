"""What pools are worth: idle, saturated, sick, and what another mix of them would have cost for the same jobs."""
