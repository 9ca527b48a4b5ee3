"""Phase one, whole: which chunks are missing, make them, seal, publish.

What is asked decides the fingerprint, the fingerprint the store; what is in the store decides
what there is to do. Killed at any moment and run again, it makes what is missing. Several
processes may share the work: the ranks of ``torchrun`` claim chunks one by one, the shards of a job
array have theirs by number. What a chunk holds does not depend on who makes it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipeline import atomic, signals
from pipeline.errors import ConfigError, OutOfMemoryError, RankError, shown
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine
from pipeline.predict.examples import Examples
from pipeline.predict.job import Job
from pipeline.predict.make import ChunkMaker, Progress, UnfitRow
from pipeline.predict.ranks import Ranks
from pipeline.predict.shard import Shard
from pipeline.predict.together import RankProgress, await_card
from pipeline.store import lock
from pipeline.store.chunk import chunk_name
from pipeline.store.prediction_set import PredictionSet, name_chunks
from pipeline.store.tally import Tally
from pipeline.store.telemetry import write_telemetry

MakeEngine = Callable[[PredictConfig, Path, Examples], Engine]


@dataclass(frozen=True)
class Result:
    """What a run did.

    Attributes:
        fingerprint: of the run.
        rows: of the set.
        chunks: of the set.
        made: chunks made by this call (by all ranks of it).
        kept: chunks that were there already, of those that were this call's to make.
        done: chunks that are there now.
        tally: what the set holds; None where it is not complete, because other shards are not.
    """

    fingerprint: str
    rows: int
    chunks: int
    made: int
    kept: int
    done: int
    tally: Tally | None


def predict(
    config: PredictConfig,
    *,
    model: Path,
    examples: Path,
    predictions: Path | str,
    telemetry: Path,
    progress: Progress,
    overwrite: bool = False,
    allow_mixed: bool = False,
    shard: Shard | None = None,
    ranks: Ranks | None = None,
    make_engine: MakeEngine | None = None,
) -> Result:
    """Make the prediction set at ``predictions``, or what is missing of it.

    Args:
        config: the ``predict`` section.
        model: local folder with the model.
        examples: the prepared data set.
        predictions: folder of the set, with the store ``.partial/<fingerprint>`` beside it; or a
            URL, with the store in ``data``.
        telemetry: CSV of time and memory per chunk.
        progress: hears of batches and chunks.
        overwrite: start anew, and replace a set of other settings.
        allow_mixed: go on with a store that was begun under other library versions.
        shard: make these chunks only; the shard that finds all complete publishes.
        ranks: share the work with the other ranks; rank 0 publishes.
        make_engine: loads the model; tests put another engine here.

    Raises:
        TwophaseError: see ``pipeline.errors``; complete chunks are kept whatever happens.
    """
    if shard is not None and overwrite:
        raise ConfigError(
            "--overwrite with --shard would remove what other shards have made; remove "
            f"{predictions} and its store once, before the array starts"
        )
    with ranks or nullcontext():
        if ranks is not None:
            config = ranks.placed(config)
        job = Job.plan(config, model, examples, predictions)
        run = Run(job, progress, shard, ranks, make_engine or load_engine, allow_mixed)
        with _saying_how_to_resume(job):
            if ranks is not None and ranks.rank > 0:
                return run.join(ranks)
            job.store.check_target(job.inputs, overwrite=overwrite)
            atomic.require_writable(telemetry)
            return run.lead(telemetry, overwrite=overwrite)


@contextmanager
def _saying_how_to_resume(job: Job) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, signals.Terminated) as stop:
        done = len(job.store.present())
        stop.add_note(f"run the same command again: {done} of {job.chunks} chunks are done")
        raise


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """Keep ``gc.collect`` between chunks from looking at what was there before the first.

    The hundreds of thousands of objects of torch and transformers cost it 0.2 to 0.5 s a chunk.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(frozen=True)
class Run:
    """One process's part in a job."""

    job: Job
    progress: Progress
    shard: Shard | None
    ranks: Ranks | None
    make_engine: MakeEngine
    allow_mixed: bool

    def lead(self, telemetry: Path, *, overwrite: bool) -> Result:
        """Alone, as a shard or as rank 0: find what is missing, make it, seal, publish."""
        store = self.job.store
        mine = self.shard.chunks(self.job.chunks) if self.shard else range(self.job.chunks)
        with store.locked(shared=self.shard is not None) as hold, self._leaving_no_trace():
            if overwrite:
                store.discard()
            else:
                store.adopt(mine)
            if self.shard is None:
                store.sweep(self.job.chunks)
            missing = self._missing(mine)
            needs_model = bool(missing) or (
                bool(mine) and not (store.begun and store.has_tokenizer)
            )
            self._tell("run", {"fingerprint": store.fingerprint, "needs_model": needs_model})
            unfit: list[UnfitRow] = []
            if needs_model:
                engine = self._begin(overwrite=overwrite)
                store.target.deliver(store, mine)  # what a run that was killed did not put
                hold.share()
                self._tell("missing", missing)
                unfit = self._make(engine, missing, mine)
            unfit += self._gather()
            if unfit:
                raise self._out_of_memory(unfit)
            tally = self._finish(mine, telemetry, overwrite=overwrite)
        return self._result(len(missing), len(mine) - len(missing), tally)

    def _missing(self, mine: Iterable[int]) -> list[int]:
        """Which chunks are to be made; says which of them were there, but damaged."""
        store = self.job.store
        there = store.present()
        missing = store.missing(mine)
        for chunk in sorted(there.intersection(missing)):
            self.progress.note(f"{chunk_name(chunk)} is damaged; making it again")
        return missing

    @contextmanager
    def _leaving_no_trace(self) -> Iterator[None]:
        """A run that ends before it begins (a setting that cannot be) leaves no store behind."""
        try:
            yield
        finally:
            if self.shard is None and not self.job.store.begun:
                self.job.store.forget()

    def join(self, ranks: Ranks) -> Result:
        """As another rank than 0: claim chunks until there are none."""
        store = self.job.store
        told = ranks.hear("run", teller=0)
        if told["fingerprint"] != store.fingerprint:
            raise RankError(
                f"rank {ranks.rank} finds another run ({store.fingerprint}) than rank 0 "
                f"({told['fingerprint']}): model, examples or params differ on its node"
            )
        unfit: list[UnfitRow] = []
        if told["needs_model"]:
            engine = self._load()
            missing = ranks.hear("missing", teller=0)
            await_card(store, ranks.rank)
            with store.locked(shared=True):
                unfit = self._make(engine, missing, [])
        ranks.tell(f"done-{ranks.rank}", msgspec.to_builtins(unfit))
        return self._result(0, 0, None)

    def _load(self) -> Engine:
        return self.make_engine(self.job.config, self.job.model, self.job.examples)

    def _begin(self, *, overwrite: bool) -> Engine:
        engine = self._load()
        store = self.job.store
        card = self.job.card(engine)
        store.begin(card, allow_mixed=self.allow_mixed, overwrite=overwrite)
        if engine.tokenizer_json is not None:
            store.write_tokenizer(engine.tokenizer_json)
        return engine

    def _make(self, engine: Engine, missing: list[int], mine: Iterable[int]) -> list[UnfitRow]:
        """Make ``missing``, or what this rank claims of it; rows whose chunks were left out."""
        card, progress, claimed = self.job.store.card, self.progress, iter(missing)
        if self.ranks is not None:
            progress = RankProgress(progress, self.ranks)
            claimed = self.ranks.claim(missing)
        if self.ranks is None or self.ranks.rank == 0:
            rows = card.rows_in(mine)
            progress.begin(rows, rows - card.rows_in(missing))
        maker = ChunkMaker(self.job.config, self.job.examples, engine, self.job.store, progress)
        with _old_objects_left_alone():
            for chunk in claimed:
                maker.make(chunk)
        return maker.left_out

    def _tell(self, key: str, value: object) -> None:
        if self.ranks is not None:
            self.ranks.tell(key, value)

    def _gather(self) -> list[UnfitRow]:
        """Wait until the other ranks are done; the rows that did not fit there."""
        if self.ranks is None:
            return []
        progress = RankProgress(self.progress, self.ranks)
        unfit: list[UnfitRow] = []
        for rank in range(1, self.ranks.size):
            told = self.ranks.hear(f"done-{rank}", teller=rank, meanwhile=progress.follow)
            unfit += msgspec.convert(told, list[UnfitRow])
        return unfit

    def _finish(self, mine: Iterable[int], telemetry: Path, *, overwrite: bool) -> Tally | None:
        """Seal and publish where every chunk is there; None where other shards are not done.

        Shards that are done at the same time both come here, one after the other.
        """
        store = self.job.store
        if store.begun:
            store.target.deliver(store, mine)
            store.target.gather(store)
        if self.shard is not None and (not store.begun or store.lacking()):
            return None
        with lock.mutex(store.folder):
            if not store.sealed:
                store.seal()
            store.publish(overwrite=overwrite)
            write_telemetry(store, telemetry)
        return Tally.of(PredictionSet(store.folder))

    def _result(self, made: int, kept: int, tally: Tally | None) -> Result:
        job = self.job
        done = len(job.store.present())
        return Result(job.store.fingerprint, job.rows, job.chunks, made, kept, done, tally)

    def _out_of_memory(self, unfit: list[UnfitRow]) -> OutOfMemoryError:
        rows = sorted(unfit, key=lambda left_out: left_out.row)
        named = ", ".join(f"row {left_out.row} (id {shown(left_out.id)})" for left_out in rows[:5])
        count = "1 row does" if len(rows) == 1 else f"{len(rows)} rows do"
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        chunks = sorted({left_out.chunk for left_out in rows})
        done = len(self.job.store.present())
        return OutOfMemoryError(
            f"{count} not fit the memory, not even alone: {named}{more}; "
            f"{done} of {self.job.chunks} chunks are done, without {name_chunks(chunks)}: run it "
            "again with more memory, or set predict.max_prompt_tokens, a smaller predict.dtype, or "
            "predict.on_oom=record (another run) to write such rows empty"
        )


def load_engine(config: PredictConfig, model: Path, examples: Examples) -> Engine:
    """The engine that ``config`` asks for, with its model loaded; imports torch."""
    from pipeline.predict import engines

    return engines.load_engine(config, model, examples)
