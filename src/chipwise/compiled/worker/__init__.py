"""One compile in a process of its own: what it is asked, what it depends on, and why it failed, in plain words."""
