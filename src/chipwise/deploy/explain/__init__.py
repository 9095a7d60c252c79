"""Why a job waits: what schedulers, queues, autoscalers and clouds said of it, in one line."""
