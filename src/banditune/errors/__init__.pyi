from banditune.core.errors import BanditTuneError as BanditTuneError
from banditune.core.errors import ConformanceError as ConformanceError
from banditune.core.errors import InvalidRequest as InvalidRequest
from banditune.core.errors import MissingDependency as MissingDependency
from banditune.core.errors import SimulationError as SimulationError
from banditune.core.errors import StoreError as StoreError
from banditune.core.errors import WorkerLost as WorkerLost
