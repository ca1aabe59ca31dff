from banditune.adapters.external_policy import ExternalPolicy as ExternalPolicy
from banditune.adapters.external_policy import wrap_policy as wrap_policy
from banditune.adapters.library_export import export_params as export_params
