"""What the verbs take where nothing is said; light, so that the command line shows the same without loading a verb."""

from __future__ import annotations

EVIDENCE = "modelled"
LAYOUTS = 10  # shown of a search
YEARS = 3.0  # that servers are owned: as long as the longest commitment they are compared with
RUNS = 1.0  # that share the migration effort
DRAWS = 4_000  # behind the range of a bill
GAP = 0.01  # to the best plan there can be
TIME_LIMIT = "60s"  # of a solver, for each plan
MODE = "train"
SUITE, DEVICE = "all", "auto"
PRECISIONS = "fp32,bf16,fp16,fp8"
LOSS_SCALE = 1024.0
MARGIN = 0.02  # more final loss that still counts as the same
REPAIR = "4h"  # until a failed node is back
TICK = "5min"  # between two scheduling passes of a simulation while nothing happens
