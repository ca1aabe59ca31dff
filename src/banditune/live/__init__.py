"""A tuned policy in production: `select_arm` and `update`, saved as JSON."""

from banditune.live.making import deploy, deploy_tuning
from banditune.live.policy import Live

__all__ = ["Live", "deploy", "deploy_tuning"]
