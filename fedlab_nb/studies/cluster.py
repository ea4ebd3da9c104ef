"""A study on several processes or machines, through Dask: training a federation's clients is a task that its methods'
tasks wait for.

Each result is sent back and put into this machine's store, so that workers need no shared folder. Dask runs a task
again whose worker was killed. On a GPU one task at a time: workers declare it (`dask worker ... --resources GPU=1`).
"""

import ast
import inspect
import linecache
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..data import add_dataset, find_in_memory
from ..errors import FedlabError, RunError, UsageError, format_error
from ..installation import format_install_command
from ..training.backend import configure_torch
from .code_version import digest_core_code
from .experiment import Run, load_stored_outcome, restore_outcome, run_plan
from .grid import Cell, CellResult
from .settings import Plan
from .store import Store, StoredEntry, TrainedClients, read_package_versions

TIMEOUT = 20  # seconds for a scheduler to answer
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
TrainedEntries = Mapping[str, Mapping[str, Any]]  # {clients' key: states, history, seconds}


class CellEnd(NamedTuple):
    """How a run on a worker ended: with an entry for the store, or with an error in words."""

    entry: StoredEntry | None
    error: str


def run_on_workers(
    cells: Sequence[Cell],
    *,
    workers: int,
    cache: bool,
    scheduler: str | None = None,
    client: Any = None,
) -> Iterator[CellResult]:
    """All cells, in the order in which they are finished. UsageError before anything is computed without Dask, without
    a scheduler at that address, or with workers of another version."""
    with ExitStack() as stack:
        if client is None:
            client = connect_to_cluster(stack, workers, scheduler, cores=os.cpu_count() or 1)
        device = cells[0].plan.settings.device
        resources = {"GPU": 1} if device.startswith("cuda") else None
        check_workers(client, resources)
        send_data(client, cells)
        print(f"Dask's dashboard: {client.dashboard_link}", file=sys.stderr)
        yield from submit_cells(client, cells, resources, cache)


def connect_to_cluster(stack: ExitStack, workers: int, scheduler: str | None, cores: int) -> Any:
    """A client of the scheduler at that address, or of `workers` processes on this machine that share its cores."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise UsageError(
            f"A study on several workers needs Dask: {format_install_command('cluster')}."
        ) from None
    if scheduler is not None:
        try:
            return stack.enter_context(Client(scheduler, timeout=TIMEOUT, name="fedlab_nb"))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"No Dask scheduler answers at {scheduler!r} ({type(error).__name__}); "
                "start one with: dask scheduler, and give its address."
            ) from None
    check_caller_is_inside_main_guard()
    threads = str(max(1, cores // workers))
    # Dask lets glibc give memory back at once; training asks for the same again, and a third of the time is lost.
    stack.enter_context(
        dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})
    )
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        env=dict.fromkeys(THREAD_VARIABLES, threads),
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        resources={"GPU": 1},
        silence_logs=logging.ERROR,
    )
    stack.enter_context(cluster)
    return stack.enter_context(Client(cluster))


def check_caller_is_inside_main_guard() -> None:
    """UsageError if this call comes from the top level of a script, outside `if __name__ == "__main__":`. Each new
    process imports the script, and would make the very call again."""
    main = sys.modules.get("__main__")
    if getattr(main, "__file__", None) is None:  # a notebook, or python -c: nothing is imported
        return
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is vars(main):
            break
        frame = frame.f_back
    else:
        return
    file = frame.f_code.co_filename
    line = frame.f_lineno
    source = "".join(linecache.getlines(file))
    if source and not is_inside_main_guard(source, line):
        raise UsageError(
            f"Line {line} of {Path(file).name} starts processes, and each of them would run the whole script again; "
            'put that line below: if __name__ == "__main__":'
        )


def is_inside_main_guard(source: str, line: int) -> bool:
    """Whether a line of a script stands in an `if` that asks for `__name__`.

    >>> is_inside_main_guard("import os\\nif __name__ == '__main__':\\n    os.getpid()\\n", 3)
    True
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # not what is running
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or line):
            names = [part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)]
            if "__name__" in names:
                return True
    return False


def check_workers(client: Any, resources: Mapping[str, int] | None) -> None:
    """UsageError unless there are workers, of this very version, and with a GPU where one is needed."""
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise UsageError(
            "The Dask scheduler has no worker; start some with: dask worker ADDRESS."
        ) from None
    version_here = make_version_key()
    try:
        versions = client.run(make_version_key)
    except Exception as error:  # most likely the package is not there
        raise UsageError(
            f"A worker cannot run fedlab_nb ({format_error(error)}); install the same version there."
        ) from None
    for address, version in versions.items():
        if version != version_here:
            raise UsageError(
                f"The worker {address} has another version ({version}) than this one ({version_here}); "
                "install the same fedlab_nb and torch on all machines."
            )
    if resources:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not any("GPU" in worker["resources"] for worker in workers):
            raise UsageError(
                "No worker declares a GPU; start them with: dask worker ADDRESS --resources GPU=1."
            )


def send_data(client: Any, cells: Sequence[Cell]) -> None:
    """Give every worker, also one that starts later, the study's data sets that are in this process's memory alone."""
    from dask.distributed import WorkerPlugin

    datasets = {}
    for name in sorted({cell.plan.settings.dataset for cell in cells}):
        dataset = find_in_memory(name)
        if dataset is not None:
            datasets[name] = dataset

    class Data(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            for name, dataset in datasets.items():
                add_dataset(name, dataset)

    if datasets:
        client.register_plugin(Data(), name="fedlab_nb data")


def submit_cells(
    client: Any, cells: Sequence[Cell], resources: Mapping[str, int] | None, cache: bool
) -> Iterator[CellResult]:
    """Give all cells to the workers; yields each when it is finished. What is in this machine's store comes first."""
    from dask.distributed import as_completed

    store = Store("runs") if cache else None
    waiting: dict[Any, Cell] = {}  # by the future of its result
    options = {"pure": False, "resources": resources, "retries": 0}
    try:
        trainings: dict[str, Any] = {}  # futures, by the clients' key
        for cell in cells:
            outcome = load_stored_outcome(cell.plan) if cache else None
            if outcome is not None:
                yield cell, outcome, ""
                continue
            key = cell.plan.make_clients_key()
            if cell.plan.method.trains_locally and key not in trainings:
                trainings[key] = client.submit(train_clients_of_plan, cell.plan, cache, **options)
            future = client.submit(run_cell, cell.plan, trainings.get(key), cache, **options)
            waiting[future] = cell
        for future in as_completed(list(waiting)):
            cell = waiting.pop(future)
            entry, error = read_result(future)
            if entry is None:
                yield cell, None, error
                continue
            if store is not None and not store.has(cell.plan.make_run_key()):
                store.put(cell.plan.make_run_key(), *entry)
            yield cell, restore_outcome(cell.plan, entry), error
    finally:
        client.cancel(list(waiting))


def read_result(future: Any) -> CellEnd:
    """What `run_cell` gave; an error if the worker was killed again and again, or could not be reached."""
    try:
        return future.result()
    except Exception as failure:
        return CellEnd(None, format_error(failure))


# ------------------------------------------------------------------------------------------------ on a worker
def make_version_key() -> str:
    """What must be the same everywhere: package, code and torch."""
    return ", ".join([*read_package_versions().values(), digest_core_code()])


def train_clients_of_plan(plan: Plan, cache: bool) -> dict[str, Any]:
    """{key: entry} of the trained clients of `plan`; nothing if their training fails, since its own run will tell."""
    clients = TrainedClients()
    store = Store("clients") if cache else None
    key = plan.make_clients_key()
    if clients.get(key, store) is None:
        run = Run(plan, clients, cache)
        with (
            suppress(FedlabError),
            configure_torch(plan.settings.device, run.federation.dataset.input_shape),
        ):
            run.prepare()
            for _ in run.record_progress(run.ctx.local_training()):
                pass
    entry = clients.get(key, store)
    return {} if entry is None else {key: entry}


def run_cell(plan: Plan, trained: TrainedEntries | None, cache: bool) -> CellEnd:
    """Carry out a run on a worker, from clients that another task has `trained`."""
    try:
        clients = TrainedClients()
        key = plan.make_clients_key()
        if trained and key in trained:
            clients.put(key, dict(trained[key]), None)
        outcome = None
        for event in run_plan(plan, clients, cache):
            outcome = event.outcome
        entry = outcome.to_entry()  # type: ignore[union-attr]  # the last event has it
        return CellEnd(entry, "")
    except MemoryError:
        return CellEnd(None, format_error(RunError("The worker has no memory left.")))
    except Exception as error:
        return CellEnd(None, format_error(error))
