"""Studies on several processes or machines, through Dask.

Training the clients of a federation is one task, for which the tasks of its methods wait. Each result is sent back and
put into this machine's store, so workers need no shared folder. Dask repeats a task whose worker was killed. A GPU gets
one task at a time, for which its worker must declare it (`dask worker ... --resources GPU=1`).
"""

from __future__ import annotations

import ast
import inspect
import linecache
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..data import add_dataset, find_dataset_in_memory
from ..errors import FedlabError, RunError, UsageError, format_error_on_one_line
from ..installation import format_install_command
from ..training.backend import use_torch_settings_for_run
from .code_version import hash_core_code
from .experiment import Run, iterate_events_of_plan, load_stored_outcome, restore_outcome
from .grid import StudyCell, StudyCellResult
from .settings import MethodRunPlan
from .store import Store, StoredEntry, TrainedClientsCache, TrainedEntry, read_package_versions

if TYPE_CHECKING:
    from dask.distributed import Client, Future, Worker

TIMEOUT = 20  # seconds for a scheduler to answer
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
TrainedClientsByKey = Mapping[str, TrainedEntry]  # by the clients' key


class StoredEntryOrError(NamedTuple):
    """The end of a run on a worker: an entry for the store, or an error message."""

    entry: StoredEntry | None
    error: str


def start_or_connect_workers_and_run_cells(
    cells: Sequence[StudyCell],
    *,
    worker_count: int,
    use_store: bool,
    scheduler_address: str | None = None,
    client: Client | None = None,
) -> Iterator[StudyCellResult]:
    """Run all cells; yields them in the order in which they are finished.

    UsageError, before anything is computed, if Dask is not installed, if no scheduler answers at that address, or if
    workers have another version.
    """
    with ExitStack() as stack:
        if client is None:
            client = connect_to_or_start_dask_cluster(
                stack, worker_count, scheduler_address, core_count=os.cpu_count() or 1
            )
        device = cells[0].plan.settings.device
        resources = {"GPU": 1} if device.startswith("cuda") else None
        check_workers_have_same_versions_and_gpu(client, resources)
        send_in_memory_datasets_to_workers(client, cells)
        print(f"Dask's dashboard: {client.dashboard_link}", file=sys.stderr)
        yield from run_cells_on_cluster(client, cells, resources, use_store)


def connect_to_or_start_dask_cluster(
    exit_stack: ExitStack, worker_count: int, scheduler_address: str | None, core_count: int
) -> Client:
    """Connect to the scheduler at that address, or start `worker_count` processes on this machine that share its
    cores."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise UsageError(
            f"A study on several workers needs Dask: {format_install_command('cluster')}."
        ) from None
    if scheduler_address is not None:
        try:
            return exit_stack.enter_context(
                Client(scheduler_address, timeout=TIMEOUT, name="fedlab_nb")
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"No Dask scheduler answers at {scheduler_address!r} ({type(error).__name__}); "
                "start one with: dask scheduler, and give its address."
            ) from None
    check_script_has_main_guard()
    threads = str(max(1, core_count // worker_count))
    # Dask tells glibc to return freed memory at once. Training allocates the same memory again and again, and would
    # lose a third of its time by that.
    exit_stack.enter_context(
        dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})
    )
    cluster = LocalCluster(
        n_workers=worker_count,
        threads_per_worker=1,
        processes=True,
        env=dict.fromkeys(THREAD_VARIABLES, threads),
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        resources={"GPU": 1},
        silence_logs=logging.ERROR,
    )
    exit_stack.enter_context(cluster)
    return exit_stack.enter_context(Client(cluster))


def check_script_has_main_guard() -> None:
    """Raise UsageError if this call is made at the top level of a script, outside `if __name__ == "__main__":`.

    Each new process imports the script, and would make the same call again.
    """
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


def is_inside_main_guard(source_code: str, line_number: int) -> bool:
    """True if a line of a script is inside an `if` whose condition reads `__name__`.

    >>> is_inside_main_guard("import os\\nif __name__ == '__main__':\\n    os.getpid()\\n", 3)
    True
    """
    try:
        tree = ast.parse(source_code)
    except SyntaxError:  # the file has changed since it was started
        return True
    for node in ast.walk(tree):
        if not isinstance(node, ast.If):
            continue
        end_line = node.end_lineno or line_number
        if node.lineno <= line_number <= end_line:
            names = [part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)]
            if "__name__" in names:
                return True
    return False


def check_workers_have_same_versions_and_gpu(
    client: Client, required_resources: Mapping[str, int] | None
) -> None:
    """Raise UsageError unless there are workers of this same version, and with a GPU if one is needed."""
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise UsageError(
            "The Dask scheduler has no worker; start some with: dask worker ADDRESS."
        ) from None
    version_here = format_versions_of_package_code_and_torch()
    try:
        versions = client.run(format_versions_of_package_code_and_torch)
    except Exception as error:  # most likely the package is not there
        raise UsageError(
            f"A worker cannot run fedlab_nb ({format_error_on_one_line(error)}); install the same version there."
        ) from None
    for address, version in versions.items():
        if version != version_here:
            raise UsageError(
                f"The worker {address} has another version ({version}) than this one ({version_here}); "
                "install the same fedlab_nb and torch on all machines."
            )
    if required_resources:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        if not any("GPU" in worker["resources"] for worker in workers):
            raise UsageError(
                "No worker declares a GPU; start them with: dask worker ADDRESS --resources GPU=1."
            )


def send_in_memory_datasets_to_workers(client: Client, cells: Sequence[StudyCell]) -> None:
    """Give every worker the study's data sets that exist only in this process's memory; later workers get them, too."""
    from dask.distributed import WorkerPlugin

    datasets = {}
    for name in sorted({cell.plan.settings.dataset for cell in cells}):
        dataset = find_dataset_in_memory(name)
        if dataset is not None:
            datasets[name] = dataset

    class Data(WorkerPlugin):
        def setup(self, worker: Worker) -> None:
            for name, dataset in datasets.items():
                add_dataset(name, dataset)

    if datasets:
        client.register_plugin(Data(), name="fedlab_nb data")


def run_cells_on_cluster(
    client: Client, cells: Sequence[StudyCell], resources: Mapping[str, int] | None, use_store: bool
) -> Iterator[StudyCellResult]:
    """Run all cells on the workers; yields each when it is finished, after those in this machine's store."""
    from dask.distributed import as_completed

    store = Store("runs") if use_store else None
    waiting: dict[Future, StudyCell] = {}  # by the future of its result
    options = {"pure": False, "resources": resources, "retries": 0}
    try:
        trainings: dict[str, Future] = {}  # futures, by the clients' key
        for cell in cells:
            outcome = load_stored_outcome(cell.plan) if use_store else None
            if outcome is not None:
                yield StudyCellResult(cell, outcome, "")
                continue
            key = cell.plan.hash_settings_of_local_training()
            if cell.plan.method.trains_locally and key not in trainings:
                trainings[key] = client.submit(
                    load_or_train_clients, cell.plan, use_store, **options
                )
            future = client.submit(
                run_plan_on_worker, cell.plan, trainings.get(key), use_store, **options
            )
            waiting[future] = cell
        for future in as_completed(list(waiting)):
            cell = waiting.pop(future)
            entry, error = get_result_or_error_of_cell(future)
            if entry is None:
                yield StudyCellResult(cell, None, error)
                continue
            if store is not None and not store.has(cell.plan.hash_settings_of_run()):
                store.write_entry_if_possible(cell.plan.hash_settings_of_run(), *entry)
            yield StudyCellResult(cell, restore_outcome(cell.plan, entry), error)
    finally:
        client.cancel(list(waiting))


def get_result_or_error_of_cell(future: Future) -> StoredEntryOrError:
    """Return the result of `run_plan_on_worker`; an error if the worker was killed repeatedly or cannot be
    reached."""
    try:
        return future.result()
    except Exception as failure:
        return StoredEntryOrError(None, format_error_on_one_line(failure))


# ------------------------------------------------------------------------------------------------ on a worker
def format_versions_of_package_code_and_torch() -> str:
    """The versions of package, code and torch, which must be the same on all machines."""
    return ", ".join([*read_package_versions().values(), hash_core_code()])


def load_or_train_clients(plan: MethodRunPlan, use_store: bool) -> TrainedClientsByKey:
    """Return {key: entry} of the trained clients of `plan`.

    It is empty if their training fails; the run that needs them then reports the error.
    """
    clients = TrainedClientsCache()
    store = Store("clients") if use_store else None
    key = plan.hash_settings_of_local_training()
    if clients.get(key, store) is None:
        run = Run(plan, clients, use_store)
        with (
            suppress(FedlabError),
            use_torch_settings_for_run(plan.settings.device, run.federation.dataset.input_shape),
        ):
            run.prepare_context()
            for _ in run.iterate_and_time_phases(run.ctx.local_training()):
                pass
    entry = clients.get(key, store)
    return {} if entry is None else {key: entry}


def run_plan_on_worker(
    plan: MethodRunPlan, trained_clients_or_none: TrainedClientsByKey | None, use_store: bool
) -> StoredEntryOrError:
    """Run a plan on a worker, with the clients that another task has trained."""
    try:
        clients = TrainedClientsCache()
        key = plan.hash_settings_of_local_training()
        if trained_clients_or_none and key in trained_clients_or_none:
            clients.add_entry(key, trained_clients_or_none[key], None)
        outcome = None
        for event in iterate_events_of_plan(plan, clients, use_store):
            outcome = event.outcome
        entry = outcome.to_entry()  # type: ignore[union-attr]  # the last event has it
        return StoredEntryOrError(entry, "")
    except MemoryError:
        return StoredEntryOrError(
            None, format_error_on_one_line(RunError("The worker has no memory left."))
        )
    except Exception as error:
        return StoredEntryOrError(None, format_error_on_one_line(error))
