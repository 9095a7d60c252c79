"""Desks for the tests of the replay: first come first served, and one that decides at random."""

from random import Random

from chipwise.route.cluster_state import Decision


class Fifo:
    """Each job in order of arrival, in the first of its options that has room."""

    name, moves = "fifo", False

    def __init__(self, pools, usable=None):
        self.free = {p.name: (usable or {}).get(p.name, p.count) for p in pools}
        self.works_now = dict(self.free)
        self.waiting, self.known, self.at, self.clock = {}, {}, {}, []

    def arrive(self, arrival):
        assert arrival.id not in self.known
        self.waiting[arrival.id] = self.known[arrival.id] = arrival

    def start(self, job, option, now):
        del self.waiting[job]
        self.at[job] = option
        self.free[option.pool] -= option.chips
        assert self.free[option.pool] >= 0

    def stop(self, job, now, kept, spent, failed):
        self._free(job)
        self.waiting[job] = self.known[job]

    def leave(self, job):
        self._free(job)

    def _free(self, job):
        option = self.at.pop(job)
        self.free[option.pool] += option.chips

    def works(self, pool, chips):
        self.free[pool] += chips - self.works_now[pool]
        self.works_now[pool] = chips

    def why(self, job):
        return "it stands in the queue"

    def options(self, arrival):
        return arrival.options

    def decide(self, now):
        self.clock.append(now)
        free, out = dict(self.free), []
        for arrival in self.waiting.values():
            for option in self.options(arrival):
                if option.chips <= free[option.pool]:
                    free[option.pool] -= option.chips
                    out.append(Decision(arrival.id, "start", option.pool, option.variant))
                    break
        return out


class Whims(Fifo):
    """Stops and starts at random; a job is stopped so often and no more, so that all ends."""

    name, moves = "whims", True

    def __init__(self, pools, seed, usable=None):
        super().__init__(pools, usable)
        self.dice, self.stops = Random(seed), {}

    def options(self, arrival):
        return self.dice.sample(arrival.options, len(arrival.options))

    def decide(self, now):
        self.clock.append(now)
        out = []
        for job in list(self.at):
            if self.known[job].job.checkpoint.restartable and self.stops.get(job, 0) < 3 and self.dice.random() < 0.3:
                self.stops[job] = self.stops.get(job, 0) + 1
                out.append(Decision(job, "stop"))
        stopped = {d.job for d in out}
        free = dict(self.free)
        for job in stopped:
            free[self.at[job].pool] += self.at[job].chips
        for arrival in self.waiting.values():
            options = [o for o in self.options(arrival) if o.chips <= free[o.pool]]
            if options and arrival.id not in stopped:
                free[options[0].pool] -= options[0].chips
                out.append(Decision(arrival.id, "start", options[0].pool, options[0].variant))
        return out
