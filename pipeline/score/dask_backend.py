"""joblib's backend for Dask, which hears of every error.

joblib 1.6 hears what a task raises, since that is caught on the worker and sent as a result. What
happens to a task from outside (the workers that held it died one after the other, it could not be
read there, the scheduler is gone) it puts where nobody looks, and waits for ever. Imported where a
cluster is asked for, and ``distributed`` with it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from joblib._dask import DaskDistributedBackend


class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]
    """For ``joblib.parallel_config``; arguments are those of the class above."""

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        # With 1, joblib would compute in this process.
        return max(2, int(super().effective_n_jobs(n_jobs)))

    def submit(self, func: Any, callback: Callable[[Any], Any] | None = None) -> Future[Any]:
        submitted: Future[Any] = super().submit(func, callback)
        if callback is not None:
            submitted.add_done_callback(lambda done: _pass_on(done, callback))
        return submitted

    def retrieve_result_callback(self, out: Any) -> Any:
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)


def _pass_on(done: Future[Any], callback: Callable[[Any], Any]) -> None:
    """Tell ``callback`` of an error; the backend itself tells it of results."""
    error = done.exception()
    if error is not None:
        callback(error)
