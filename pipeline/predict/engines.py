"""Which engine a run takes, and the checks that come before the minutes of loading a model."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.extras import require_extra
from pipeline.predict.audio import AudioColumn
from pipeline.predict.config import PredictConfig
from pipeline.predict.ctc import CtcEngine
from pipeline.predict.engine import Engine
from pipeline.predict.examples import Examples
from pipeline.predict.fields import check_fields, check_not_empty
from pipeline.predict.forced import ForcedEngine
from pipeline.predict.generate import GenerateEngine
from pipeline.predict.generation import check_generation
from pipeline.predict.load import choose_kind, load, load_model_config
from pipeline.predict.template import Template


def load_engine(config: PredictConfig, model: Path, examples: Examples) -> Engine:
    """The engine that ``predict.engine`` names, or that suits the model where it is ``auto``.

    For ``ctc``, the settings of text (template, chat, generation, …) are not looked at; for
    ``forced``, those of generation.

    Args:
        config: the ``predict`` section.
        model: local folder with the model.
        examples: the prepared data set.

    Raises:
        ConfigError: settings that cannot be used.
        ModelError: a model that cannot be loaded, or does not fit the settings.
        MissingExtraError: a setting whose packages are not installed.
    """
    model_config = load_model_config(model, trust_remote_code=config.trust_remote_code)
    kind = choose_kind(model_config, model, config.engine)
    if config.logprob and (kind == "ctc" or config.engine == "forced"):
        raise ConfigError(
            "predict.logprob is of generated tokens; the engine forced stores the references' nll "
            "instead, and ctc generates none: set it to false"
        )
    if kind == "ctc":
        require_extra("speech", "audio", ["soundfile", "soxr"])
        column = AudioColumn(examples, config.sampling_rate)
        return CtcEngine(load(model, config), model, column)
    template = Template(config.template, examples.inputs)
    check_fields(template, examples.schema)
    if template.only_fields and not config.chat:
        check_not_empty(template, examples.columns(["row", "id", *template.fields]))
    if config.engine == "forced":
        return ForcedEngine(load(model, config), config, template)
    fields = check_generation(config.generation)
    return GenerateEngine(load(model, config), config, template, fields)
