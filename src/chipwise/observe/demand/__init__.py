"""What was wanted of chips month by month, by what ran, and what that makes of the months to come."""
