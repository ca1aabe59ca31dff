"""banditune finds how much a bandit policy should explore: `import banditune as bt`, then `bt.tune(...)`.

Names load when they are first used: importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "contracts": "BadRequest Enough Fault Found Goal Instances Outage Parameter Play Policy Problem Range Setting Trial "
    "Tuner scalar",
    "streams": "bernoulli beta binomial exponential gamma_variate normal uniform",
    "problems": "Bernoulli BetaRewards Campaigns Gaussian Linear Logistic Mixture RewardTable arm_problem "
    "problem_from warm_up",
    "policies": "GLMTSL UCB1 UCB1Step UCBGLM EpsilonGreedy ExploreThenCommit GLMEpsilonGreedy GLMGreedy GaussianThompson "
    "Greedy LinEpsilonGreedy LinGreedy LinTS LinUCB Thompson arm_policy best_mean best_score random_arm ridge_policy "
    "sample_scores",
    "pages": "explain",
    "exact": "Gittins Optimal OptimalMixture gittins_index optimal_policy",
    "engine.cluster": "Cluster Dask Processes Ray Threads",
    "tuners": "NoTeS Optuna SequentialHalving TwoPart Uniform budget_needed failure_bound iterations_needed",
    "results": "Account Backtest Belief Bound Check Comparison Curve Entry Estimate ExactRegret Export Fit Fitted Floor "
    "Optimum PaperCell PaperCurve Reproduction Sample Setup Spread Strain Stress Tally TrialResult Tuning Unimodality "
    "from_json load",
    "study": "check_problem compare curve exact_regret lower_bound optimum simulate stress tune",
    "logs": "Logs Prior backtest fit logs_of read_logs read_prior write_prior",
    "guests": "Foreign exported foreign",
    "paper": "reproduce",
    "live": "Live deploy deploy_tuning",
    "reports": "plot report text",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'banditune' has no attribute {name!r}")
    return getattr(import_module(f"banditune.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
