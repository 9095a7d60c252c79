"""What touches the machine: files read with limits and written atomically, folders, compiled code and its cache."""
