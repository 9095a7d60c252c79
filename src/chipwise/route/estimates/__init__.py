"""What each job takes in each pool: an `Option` with its time, cost and power, or why it can't run there."""

from chipwise.route.estimates.admission import Admitted, admit
from chipwise.route.estimates.options import Estimator, estimator, options

__all__ = ["Admitted", "Estimator", "admit", "estimator", "options"]
