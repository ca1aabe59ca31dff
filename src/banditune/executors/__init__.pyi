from banditune.simulation.executor import Executor as Executor
from banditune.simulation.executors.dask import DaskExecutor as DaskExecutor
from banditune.simulation.executors.processes import ProcessExecutor as ProcessExecutor
from banditune.simulation.executors.ray import RayExecutor as RayExecutor
from banditune.simulation.executors.threads import ThreadExecutor as ThreadExecutor
