"""A study on several processes or machines, through Dask: training a federation's clients is a task that its methods'
tasks wait for.

Each result is sent back and put into this machine's store, so that workers need no shared folder. Dask runs a task
again whose worker was killed. On a GPU one task at a time: workers declare it (`dask worker ... --resources GPU=1`).
"""

import ast
import inspect
import linecache
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from ..data import add_dataset, find_in_memory
from ..errors import FedlabError, RunError, UsageError, reason
from ..installation import install_command
from ..training.backend import suited
from .code_version import core_code
from .experiment import Run, plan_events, recall, restored
from .grid import Cell, Done
from .settings import Plan
from .store import Store, TrainedClients, made

WAIT = 20  # seconds for a scheduler to answer
Entry = tuple[dict[str, Any], dict[str, Any]]
Trained = Mapping[str, Mapping[str, Any]]  # {clients' key: states, history, seconds}


def distributed(
    cells: Sequence[Cell],
    *,
    workers: int,
    cache: bool,
    scheduler: str | None = None,
    client: Any = None,
) -> Iterator[Done]:
    """All cells, in the order in which they are finished. UsageError before anything is computed without Dask, without
    a scheduler at that address, or with workers of another version."""
    with ExitStack() as stack:
        if client is None:
            client = connect(stack, workers, scheduler, cores=os.cpu_count() or 1)
        device = cells[0].plan.settings.device
        resources = {"GPU": 1} if device.startswith("cuda") else None
        check(client, resources)
        send_data(client, cells)
        print(f"Dask's dashboard: {client.dashboard_link}", file=sys.stderr)
        yield from _submitted(client, cells, resources, cache)


def connect(stack: ExitStack, workers: int, scheduler: str | None, cores: int) -> Any:
    """A client of the scheduler at that address, or of `workers` processes on this machine that share its cores."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise UsageError(
            f"A study on several workers needs Dask: {install_command('cluster')}."
        ) from None
    if scheduler is not None:
        try:
            return stack.enter_context(Client(scheduler, timeout=WAIT, name="fedlab_nb"))
        except (OSError, ValueError) as error:
            why = f"No Dask scheduler answers at {scheduler!r} ({type(error).__name__})"
            raise UsageError(
                f"{why}; start one with: dask scheduler, and give its address."
            ) from None
    check_main_guard()
    threads = str(max(1, cores // workers))
    # Dask lets glibc give memory back at once; training asks for the same again, and a third of the time is lost.
    stack.enter_context(
        dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})
    )
    options = {
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "resources": {"GPU": 1},
        "silence_logs": 40,
    }
    env = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, env=env, **options
    )
    return stack.enter_context(Client(stack.enter_context(cluster)))


def check_main_guard() -> None:
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
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = "".join(linecache.getlines(file))
    if source and not is_guarded(source, line):
        raise UsageError(
            f"Line {line} of {Path(file).name} starts processes, and each of them would run the whole script again; "
            'put that line below: if __name__ == "__main__":'
        )


def is_guarded(source: str, line: int) -> bool:
    """Whether a line of a script stands in an `if` that asks for `__name__`.

    >>> is_guarded("import os\\nif __name__ == '__main__':\\n    os.getpid()\\n", 3)
    True
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # not what is running
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or line):
            if any(
                isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
            ):
                return True
    return False


def check(client: Any, resources: Mapping[str, int] | None) -> None:
    """UsageError unless there are workers, of this very version, and with a GPU where one is needed."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError:
        raise UsageError(
            "The Dask scheduler has no worker; start some with: dask worker ADDRESS."
        ) from None
    here = version_of_worker()
    try:
        others = {
            address: version
            for address, version in client.run(version_of_worker).items()
            if version != here
        }
    except Exception as error:  # most likely the package is not there
        raise UsageError(
            f"A worker cannot run fedlab_nb ({reason(error)}); install the same version there."
        ) from None
    if others:
        address, version = next(iter(others.items()))
        other = f"The worker {address} has another version ({version}) than this one ({here})"
        raise UsageError(f"{other}; install the same fedlab_nb and torch on all machines.")
    if resources and not any(
        "GPU" in w["resources"] for w in client.scheduler_info(n_workers=-1)["workers"].values()
    ):
        raise UsageError(
            "No worker declares a GPU; start them with: dask worker ADDRESS --resources GPU=1."
        )


def send_data(client: Any, cells: Sequence[Cell]) -> None:
    """Give every worker, also one that starts later, the study's data sets that are in this process's memory alone."""
    from dask.distributed import WorkerPlugin

    names = {cell.plan.settings.dataset for cell in cells}
    own = {name: dataset for name in sorted(names) if (dataset := find_in_memory(name)) is not None}

    class Data(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            for name, dataset in own.items():
                add_dataset(name, dataset)

    if own:
        client.register_plugin(Data(), name="fedlab_nb data")


def _submitted(
    client: Any, cells: Sequence[Cell], resources: Mapping[str, int] | None, cache: bool
) -> Iterator[Done]:
    from dask.distributed import as_completed

    store = Store("runs") if cache else None
    waiting: dict[Any, Cell] = {}
    options = {"pure": False, "resources": resources, "retries": 0}
    try:
        trainings: dict[str, Any] = {}
        for cell in cells:
            outcome = recall(cell.plan) if cache else None
            if outcome is not None:
                yield cell, outcome, ""
                continue
            key = cell.plan.clients_key()
            if cell.plan.method.trains_locally and key not in trainings:
                trainings[key] = client.submit(train, cell.plan, cache, **options)
            waiting[client.submit(one_cell, cell.plan, trainings.get(key), cache, **options)] = cell
        for future in as_completed(list(waiting)):
            cell = waiting.pop(future)
            try:
                entry, error = future.result()
            except (
                Exception
            ) as failure:  # the worker was killed again and again, or could not be reached
                entry, error = None, reason(failure)
            if entry and store and not store.has(cell.plan.run_key()):
                store.put(cell.plan.run_key(), *entry)
            yield cell, restored(cell.plan, entry) if entry else None, error
    finally:
        client.cancel(list(waiting))


# ------------------------------------------------------------------------------------------------ on a worker
def version_of_worker() -> str:
    """What must be the same everywhere: package, code and torch."""
    return ", ".join([*made().values(), core_code()])


def train(plan: Plan, cache: bool) -> dict[str, Any]:
    """{key: entry} of the trained clients of `plan`; nothing if their training fails, since its own run will tell."""
    clients, store, key = TrainedClients(), Store("clients") if cache else None, plan.clients_key()
    if clients.get(key, store) is None:
        run = Run(plan, clients, cache)
        with (
            suppress(FedlabError),
            suited(plan.settings.device, run.federation.dataset.input_shape),
        ):
            run.begin()
            for _ in run.watch(run.ctx.local_training()):
                pass
    entry = clients.get(key, store)
    return {} if entry is None else {key: entry}


def one_cell(plan: Plan, trained: Trained | None, cache: bool) -> tuple[Entry | None, str]:
    """A run on a worker, from clients that another task has `trained`: (its entry, "") or (None, why it failed)."""
    try:
        clients, key = TrainedClients(), plan.clients_key()
        if trained and key in trained:
            clients.put(key, dict(trained[key]), None)
        outcomes = [
            event.outcome
            for event in plan_events(plan, clients, cache)
            if event.outcome is not None
        ]
        return outcomes[-1].to_entry(), ""
    except Exception as error:
        return None, reason(
            error
            if not isinstance(error, MemoryError)
            else RunError("The worker has no memory left.")
        )
