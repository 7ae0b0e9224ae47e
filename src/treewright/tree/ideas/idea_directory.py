"""The idea source `directory`: the `.md` files of a directory, in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.tree.config import DirectoryIdeas
from treewright.tree.ideas.idea_source import Idea, IdeaSourceError, NodeContext, Proposals

_REPAIR = "save it as UTF-8 or take it out of the directory"


class DirectorySource:
    """Proposes the same files at every node; the expander skips files that were tried."""

    def __init__(self, config: DirectoryIdeas) -> None:
        self._config = config

    def propose(self, context: NodeContext, taken: Iterable[str]) -> Proposals:
        return Proposals(read_ideas(context.repo / self._config.path, origin=self._config.path))


def read_ideas(directory: Path, *, origin: str, repair: str = _REPAIR) -> list[Idea]:
    """Return the ideas of the `.md` files in a directory, without empty files.

    Line endings are kept. Subdirectories are not searched.

    Args:
        directory: The directory.
        origin: The origin that the record gets, before the name of the file.
        repair: The advice in the error for a file that is not UTF-8.

    Raises:
        IdeaSourceError: the directory or a file cannot be read, or a file is not UTF-8.
    """
    try:
        paths = sorted(
            path for path in directory.iterdir() if path.suffix == ".md" and path.is_file()
        )
    except OSError as error:
        raise IdeaSourceError(
            f"cannot read the idea directory {directory}: {error.strerror}; "
            "check `path` of this idea source"
        ) from error
    ideas: list[Idea] = []
    for path in paths:
        name = os.fsencode(path.name).decode("utf-8", "backslashreplace")  # records are UTF-8
        try:
            # Read bytes, because reading text would turn CRLF in a patch into LF.
            # The user may use links, but the target must be a plain file.
            text = untrusted.read(path.resolve(), untrusted.LARGEST_TEXT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise IdeaSourceError(
                f"{directory / name} is not UTF-8 text (byte {error.start}); {repair}, "
                "then run the same command again"
            ) from None
        except OSError as error:
            raise IdeaSourceError(
                f"cannot read {directory / name}: {error.strerror or error}"
            ) from error
        if text.strip():
            ideas.append(Idea(text, origin=f"{origin}/{name}"))
    return ideas
