"""The backends that run jobs, each behind `chipwise.route.backend.Backend`."""
