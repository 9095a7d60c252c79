"""Where each job goes: predicted on every pool, chosen by a policy, run on the backend people have, never lost."""
