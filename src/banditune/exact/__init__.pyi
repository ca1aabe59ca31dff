from banditune.exact.gittins import Gittins as Gittins
from banditune.exact.gittins import compute_gittins_index as compute_gittins_index
from banditune.exact.optimal_mixture import OptimalMixture as OptimalMixture
from banditune.exact.optimal_two_arms import Optimal as Optimal
from banditune.exact.optimal_value import make_optimal_policy as make_optimal_policy
from banditune.study.exact_values import compute_exact_regret as compute_exact_regret
from banditune.study.exact_values import compute_lower_bound as compute_lower_bound
from banditune.study.exact_values import compute_optimum as compute_optimum
