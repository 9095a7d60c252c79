"""The engines that run jobs, each behind `chipwise.route.backend.Engine`."""
