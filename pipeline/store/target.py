"""Where a set that is being made is to stand, once it is whole.

A run works in its store on this machine (``work``), whatever the target is. A folder (``publish``)
hears nothing until the set is sealed and appears in one rename. A URL (``upload``) has no rename:
there every chunk is put in place as soon as it is complete, the seal last, and what stands there
already need not be made again, whoever made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.errors import FingerprintError
from pipeline.store.card import RunCard, differing_inputs
from pipeline.store.place import Folder, Place, open_place

if TYPE_CHECKING:
    from pipeline.store.work import WorkStore


class Target(Protocol):
    """A place at which a set is put; printed, it is what the person called it.

    Attributes:
        place: to read it from.
        stores: folder on this machine in which its stores lie, each named by its fingerprint.
    """

    @property
    def place(self) -> Place: ...

    @property
    def stores(self) -> Path: ...

    def check(self, fingerprint: str, inputs: dict[str, Any], *, overwrite: bool) -> None:
        """Refuse what cannot be replaced.

        Raises:
            FingerprintError: a set of other settings stands there, and not ``overwrite``.
            PredictionSetError: what stands there is not part of a prediction set.
        """

    def begin(self, card: RunCard, *, overwrite: bool = False) -> RunCard:
        """Write the run card, where it is written first; ``overwrite`` removes what is there.

        Returns:
            The card that stands there now: ``card``, or that of the machine that was first.
        """

    def find_card(self, store: WorkStore) -> None:
        """Give ``store`` the run card that another machine has put there, if it has."""

    def holds(self, fingerprint: str) -> set[int]:
        """Chunks of this run that ``adopt`` could take over."""

    def adopt(self, store: WorkStore, chunks: Iterable[int] | None = None) -> int:
        """Take over intact chunks (None is all) that ``store`` lacks; return how many."""

    def gather(self, store: WorkStore) -> None:
        """Take over what other machines have put there, if that makes ``store`` complete."""

    def put(self, store: WorkStore, chunk: int) -> None:
        """``chunk`` is complete."""

    def deliver(self, store: WorkStore, chunks: Iterable[int]) -> None:
        """``put`` those of ``chunks`` that are in ``store`` and not there, and the tokenizer."""

    def publish(self, store: WorkStore) -> None:
        """Make it the sealed set in ``store``; nothing happens where it is that already."""


def open_target(where: Path | str) -> Target:
    """The target that a person names.

    Raises:
        PredictionSetError: a link that leads to itself.
        TwophaseError: see ``open_place``.
    """
    place = open_place(where)
    if isinstance(place, Folder):
        from pipeline.store.publish import FolderTarget

        return FolderTarget.at(place.path)
    from pipeline.store.upload import UrlTarget
    from pipeline.store.url import Url

    assert isinstance(place, Url)
    return UrlTarget(place)


def require_same_run(
    where: Place, theirs: RunCard, fingerprint: str, inputs: dict[str, Any]
) -> None:
    """Raise ``FingerprintError`` where the card that stands at ``where`` is of another run."""
    if theirs.fingerprint != fingerprint:
        differing = ", ".join(differing_inputs(inputs, theirs.inputs))
        raise FingerprintError(
            f"{where} holds predictions of other settings (differing: {differing}); name "
            "another folder or URL with --predictions, or pass --overwrite to replace them"
        )
