"""Programs of users: imported by a worker only, since some need jax or torch and some end the process."""

collect_ignore_glob = ["programs/*", "cases/*"]
