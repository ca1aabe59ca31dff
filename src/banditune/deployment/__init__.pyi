from banditune.deployment.deployed_policy import DeployedPolicy as DeployedPolicy
from banditune.deployment.deployment_setup import deploy as deploy
from banditune.deployment.deployment_setup import deploy_result as deploy_result
