"""What a run is to do: known from the settings and the files, before torch is imported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.predict import fingerprint
from pipeline.predict.config import PredictConfig
from pipeline.predict.engine import Engine
from pipeline.predict.examples import Examples
from pipeline.predict.rows import slice_rows
from pipeline.store.card import RunCard, fingerprint_of
from pipeline.store.work import WorkStore


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        config: the ``predict`` section.
        model: local folder with the model.
        examples: the prepared data set.
        first_row: of the data set, that the run begins at.
        rows: number of rows of the run.
        inputs: of the fingerprint.
        store: where its chunks are.
    """

    config: PredictConfig
    model: Path
    examples: Examples
    first_row: int
    rows: int
    inputs: dict[str, Any]
    store: WorkStore

    @classmethod
    def plan(
        cls, config: PredictConfig, model: Path, examples: Path, predictions: Path | str
    ) -> Job:
        """The run that ``config`` asks for.

        Raises:
            TwophaseError: a slice, data set or model that cannot be used.
        """
        data = Examples(examples)
        first_row, stop = slice_rows(config.rows, data.rows)
        inputs = fingerprint.run_inputs(config, examples, model)
        store = WorkStore(predictions, fingerprint_of(inputs))
        return cls(config, model, data, first_row, stop - first_row, inputs, store)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.rows // self.config.chunk_rows)

    def card(self, engine: Engine) -> RunCard:
        """The run card; the engine knows how predictions are stored."""
        return RunCard.plan(
            inputs=self.inputs,
            rows=self.rows,
            chunk_rows=self.config.chunk_rows,
            versions=fingerprint.library_versions(self.inputs),
            prediction="text" if engine.tokenizer_json is None else "ids",
            decode=engine.decode,
            optional=engine.optional,
            keep=self.examples.keep,
            first_row=self.first_row,
        )
