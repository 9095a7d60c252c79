"""The engines that run jobs, each behind `chipwise.route.engine.Engine`."""
