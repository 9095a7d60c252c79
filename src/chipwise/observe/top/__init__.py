"""Jobs, devices and pools as they are now, on one screen."""
