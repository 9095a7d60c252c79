"""A cluster behind the recorded API: Jobs are kept, and their containers run here as processes.

It answers as the API server does to what the backend asks: 201 and 409 for a new object, lists with labels, 404 for what
is gone; and does what the Job controller and a kubelet do with one pod: it runs, ends with a status, or is disrupted.
"""

import subprocess
import tempfile

from kubernetes_cases import JOBS, PODS, condition, core, expanded, pod
from kubernetes_server import failure


class KubernetesCluster:
    """Jobs of one namespace on a `kubernetes_server.Server`."""

    def __init__(self, server):
        self.server, self.jobs, self.programs, self.disrupted = server, {}, {}, set()
        server.play("POST", JOBS, (201, self.create))
        server.play("GET", JOBS, (200, lambda query, body: (200, {"items": self.items(), "metadata": {}})))
        server.play("GET", PODS, (200, lambda query, body: (200, {"items": self.pods(), "metadata": {}})))

    def create(self, query, body):
        core("job-batch-v1").validate(body)
        name = body["metadata"]["name"]
        if name in self.jobs:
            return 409, failure(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
        container = body["spec"]["template"]["spec"]["containers"][0]
        variables = {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}
        words = [expanded(word, variables) for word in (*container.get("command", ()), *container.get("args", ()))]
        self.jobs[name] = body
        self.programs[name] = subprocess.Popen(words, env=variables, cwd=tempfile.gettempdir())
        self.server.play("GET", f"{JOBS}/{name}", (200, lambda query, body: self.get(name)))
        self.server.play("DELETE", f"{JOBS}/{name}", (200, lambda query, body: self.delete(name)))
        return 201, body

    def get(self, name):
        gone = (
            404,
            failure(404, "NotFound", f'jobs.batch "{name}" not found') | {"details": {"name": name, "kind": "jobs"}},
        )
        return (200, self.item(name)) if name in self.jobs else gone

    def delete(self, name):
        answer = self.get(name)
        if self.jobs.pop(name, None):
            self.end(name)
        return answer

    def disrupt(self, name):
        """Its node is gone."""
        self.disrupted.add(name)
        self.end(name)

    def end(self, name):
        self.programs[name].kill()
        self.programs[name].wait()

    def close(self):
        for name in self.programs:
            self.end(name)

    def item(self, name):
        """The Job with its status by now."""
        status = self.programs[name].poll()
        failed = condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        conditions = [] if status is None else [condition("Complete") if status == 0 else failed]
        return {**self.jobs[name], "status": {"conditions": conditions}}

    def items(self):
        return [self.item(name) for name in self.jobs]

    def pods(self):
        return [self.pod(name) for name in self.jobs]

    def pod(self, name):
        attempt, status = self.jobs[name]["metadata"]["labels"]["chipwise-attempt"], self.programs[name].poll()
        if status is None:
            return pod(attempt)
        gone = (
            [condition("DisruptionTarget", "DeletionByTaintManager", "the node is gone")]
            if name in self.disrupted
            else []
        )
        return pod(attempt, "Failed" if status else "Succeeded", gone, exit_code=status)
