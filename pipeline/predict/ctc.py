"""The engine for speech models with a CTC head, such as Wav2Vec2.

The best token of each frame is taken on the device; the frames beyond a row's own length, which
padding brought, are cut off, and the tokenizer puts the rest together (repeats once, blanks not
at all). Its rules are no ``tokenizer.json``, so the text is stored.

Whether padding may be there at all the feature extractor says: models with a group norm over time
were trained without a mask (``return_attention_mask: false``) and hear padding as silence, so
their rows are taken one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.errors import ModelError, first_line
from pipeline.predict.audio import AudioColumn
from pipeline.predict.engine import Prediction
from pipeline.predict.load import Loaded
from pipeline.predict.memory import DeviceMemory
from pipeline.schema import END
from pipeline.store.card import DecodeOptions


@dataclass(frozen=True, slots=True)
class AudioPrompt:
    """One row's audio.

    Attributes:
        samples: float32, at the model's rate.
        length: frames that the model makes of it; 0 where it is shorter than one.
    """

    samples: np.ndarray[Any, np.dtype[np.float32]]
    length: int

    @property
    def prompt_tokens(self) -> int:
        """Frames."""
        return self.length

    @property
    def truncated(self) -> bool:
        """Audio is never cut."""
        return False


class CtcEngine:
    """Transcribes with a loaded model; see ``engine.Engine``.

    Args:
        loaded: model, tokenizer and device.
        folder: where the feature extractor's settings are.
        column: the input column.

    Raises:
        ModelError: no feature extractor, or a model that does not take raw audio.
    """

    def __init__(self, loaded: Loaded, folder: Path, column: AudioColumn) -> None:
        self._loaded = loaded
        self._column = column
        self._extractor = _extractor(folder)
        if loaded.model.main_input_name != "input_values" or not hasattr(
            loaded.model, "_get_feat_extract_output_lengths"
        ):
            raise ModelError(
                f"{folder} is a {loaded.model.config.model_type} model, which does not take raw "
                "audio; CTC models like Wav2Vec2, HuBERT, WavLM or SEW do"
            )
        self.new_tokens = 0
        self.max_rows: int | None = None if self._extractor.return_attention_mask else 1
        self.optional: tuple[str, ...] = ()
        self.tokenizer_json: str | None = None
        self.decode = DecodeOptions()
        self.memory = DeviceMemory(loaded.device)

    def prompts(self, examples: pa.Table) -> list[AudioPrompt]:
        """The audio of a chunk's rows, in order."""
        heard = self._column.read(examples, int(self._extractor.sampling_rate))
        return [AudioPrompt(samples, self._frames(len(samples))) for samples in heard]

    def _frames(self, samples: int) -> int:
        import torch

        lengths = self._loaded.model._get_feat_extract_output_lengths(torch.tensor([samples]))
        return max(0, int(lengths[0]))

    def predict(self, batch: Sequence[AudioPrompt]) -> list[Prediction]:
        """Transcribe ``batch``, in order; audio shorter than a frame has no text."""
        audible = [prompt for prompt in batch if prompt.length]
        best = iter(self._best(audible)) if audible else iter(())
        predictions = []
        for prompt in batch:
            ids: list[int] = next(best)[: prompt.length].tolist() if prompt.length else []
            text = self._loaded.tokenizer.decode(ids) if ids else ""
            predictions.append(Prediction(ids, END, text))
        return predictions

    def _best(self, batch: Sequence[AudioPrompt]) -> Any:
        """The best token of each frame.  # (rows, most frames) int64"""
        import torch

        features = self._extractor(
            [prompt.samples for prompt in batch],
            sampling_rate=self._extractor.sampling_rate,
            padding=True,
            return_tensors="pt",
        )
        inputs = {name: value.to(self._loaded.device) for name, value in features.items()}
        inputs["input_values"] = inputs["input_values"].to(self._loaded.model.dtype)
        with torch.inference_mode():
            return self._loaded.model(**inputs).logits.argmax(dim=-1).cpu()


def _extractor(folder: Path) -> Any:
    from transformers import AutoFeatureExtractor

    try:
        return AutoFeatureExtractor.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise ModelError(
            f"{folder} has no feature extractor that can be loaded ({first_line(error)}); save it "
            "beside the model: feature_extractor.save_pretrained(folder)"
        ) from None
