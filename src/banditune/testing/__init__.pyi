from banditune.testing.executor_conformance import check_executor as check_executor
from banditune.testing.policy_conformance import check_policy as check_policy
from banditune.testing.problem_conformance import check_problem as check_problem
from banditune.testing.tuner_conformance import check_tuner as check_tuner
