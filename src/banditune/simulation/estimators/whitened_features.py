"""Features in the coordinates in which the prior of theta is N(0, I), and the positions of a policy's options."""

from __future__ import annotations

from banditune.core.scalar import scalar


@scalar
def read_policy_option(setting, position):
    """Read one of the policy's options, which follow the penalty and the prior."""
    return setting.options[1 + setting.dims + setting.dims * setting.dims + position]


@scalar
def whiten_features(features, prior_score, setting):
    """Compute features in the coordinates in which the prior is N(0, I), and scores under the prior's mean."""
    arms = setting.arms
    dims = setting.dims
    for arm in range(arms):
        prior_score[arm] = 0.0
    for j in range(dims):
        mean = setting.options[1 + j]
        for arm in range(arms):
            prior_score[arm] += mean * setting.features[j, arm]
            features[j * arms + arm] = 0.0
    # The covariance's root is lower triangular: entry (i, j) is the part of feature i in coordinate j <= i.
    for i in range(dims):
        for j in range(i + 1):
            entry = setting.options[1 + dims + i * dims + j]
            if entry != 0.0:
                for arm in range(arms):
                    features[j * arms + arm] += entry * setting.features[i, arm]
