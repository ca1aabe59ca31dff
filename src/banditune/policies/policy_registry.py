"""The registry of policies. To add one: write a module in this package and add it to `POLICIES`."""

from banditune.core.lazy_registry import Registry

POLICIES = Registry(
    {
        "ucb1": "banditune.policies.ucb1:UCB1",
        "ucb1-step": "banditune.policies.ucb1_step:UCB1Step",
        "kl-ucb": "banditune.policies.kl_ucb:KLUCB",
        "ucb-v": "banditune.policies.ucb_v:UCBV",
        "moss": "banditune.policies.moss:MOSS",
        "bayes-ucb": "banditune.policies.bayes_ucb:BayesUCB",
        "ts": "banditune.policies.thompson:Thompson",
        "gaussian-ts": "banditune.policies.gaussian_thompson:GaussianThompson",
        "finite-horizon-index": "banditune.policies.finite_horizon_index:FiniteHorizonIndex",
        "gaussian-finite-horizon-index": "banditune.policies.finite_horizon_index:GaussianFiniteHorizonIndex",
        "epsilon-greedy": "banditune.policies.epsilon_greedy:EpsilonGreedy",
        "explore-then-commit": "banditune.policies.explore_then_commit:ExploreThenCommit",
        "greedy": "banditune.policies.greedy:Greedy",
        "linucb": "banditune.policies.linucb:LinUCB",
        "lints": "banditune.policies.lints:LinTS",
        "ucb-glm": "banditune.policies.ucb_glm:UCBGLM",
        "glm-tsl": "banditune.policies.glm_tsl:GLMTSL",
        "lin-epsilon-greedy": "banditune.policies.linear_greedy:LinEpsilonGreedy",
        "lin-greedy": "banditune.policies.linear_greedy:LinGreedy",
        "glm-epsilon-greedy": "banditune.policies.glm_greedy:GLMEpsilonGreedy",
        "glm-greedy": "banditune.policies.glm_greedy:GLMGreedy",
    },
    group="banditune.policies",
)
