"""``--shard i/n``: a part of the chunks, for jobs of an array that know nothing of each other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` (from 1) of ``of``: the chunks number − 1, number − 1 + of, …."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/8`` is the second of eight.

        Raises:
            ConfigError: not of that form, or a number that is not among them.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text.strip(), flags=re.ASCII)
        if match is None:
            raise ConfigError(f"--shard {text}: write i/n, such as 2/8 for the second of eight")
        number, of = int(match[1]), int(match[2])
        if not 1 <= number <= of:
            counted = "" if number else "; job arrays that count from 0 add 1 to their task id"
            raise ConfigError(f"--shard {text}: shards are numbered 1 to {of}{counted}")
        return cls(number, of)

    def chunks(self, total: int) -> range:
        """Its chunks out of ``total``."""
        return range(self.number - 1, total, self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
