"""The same settings give the same tokens — or ``pipeline/predict/VERSION`` was bumped.

DVC reruns predict when that file changes and not when a source file does. So a change to prompts,
batches, generation or the cutting of ids that alters a token must come with a new version: this
test fails until the golden ids, which carry the version, are written anew:

    python -m tests.predict.test_golden
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from pipeline.predict.config import PredictConfig
from pipeline.predict.examples import Examples
from pipeline.predict.fingerprint import predict_version
from pipeline.predict.generate import GenerateEngine
from pipeline.predict.generation import check_generation
from pipeline.predict.load import load
from pipeline.predict.template import Template
from tests.examples import write_examples
from tests.models import TEXTS, save_gpt2, save_t5

GOLDEN = Path(__file__).with_name("golden.json")
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"generation": {"max_new_tokens": 8}},
    "beams": {"generation": {"max_new_tokens": 8, "num_beams": 3}},
    "cut": {"generation": {"max_new_tokens": 8}, "max_prompt_tokens": 16},
    "chat": {"generation": {"max_new_tokens": 8}, "chat": True, "template": "Say {document}!"},
}


def fix_weights(model: Any) -> None:
    """Weights from NumPy's frozen generator: torch's own may change between versions."""
    import numpy as np
    import torch

    with torch.no_grad():
        for number, (_, parameter) in enumerate(sorted(model.named_parameters())):
            if parameter.ndim > 1:  # norms and biases stay 1 and 0
                values = np.random.RandomState(number).standard_normal(tuple(parameter.shape))
                parameter.copy_(torch.from_numpy(values * 0.4))


def predict_all(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"version": predict_version()}
    models = {
        "gpt2": save_gpt2(folder / "gpt2", pad=False, chat=True),
        "t5": save_t5(folder / "t5"),
    }
    rows = Examples(write_examples(folder / "examples.parquet", [*TEXTS, "a"])).read(0, 5)
    for model, path in models.items():
        for name, keys in SETTINGS.items():
            if name == "chat" and model == "t5":
                continue
            config = PredictConfig(device="cpu", **keys)
            loaded = load(path, config)
            fix_weights(loaded.model)
            template = Template(config.template, ["document"])
            engine = GenerateEngine(loaded, config, template, check_generation(config.generation))
            predictions = engine.predict(engine.prompts(rows))
            found[f"{model} {name}"] = [prediction.ids for prediction in predictions]
    return found


def test_the_tokens_are_those_of_this_version(tmp_path: Path) -> None:
    assert predict_all(tmp_path) == json.loads(GOLDEN.read_text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in predict_all(Path(place)).items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
