"""Building a premise index from a Lean session, or bringing one up to date.

Every step is committed when it is done, so that an interrupted build continues: declarations page
by page, then the lexical index, then embeddings batch by batch, then the vector index.

`ensure_index` builds the lexical index of a Lean's library at first use, which takes seconds. It is
kept in the user's cache, one file for each Lean and set of imports. If two processes need it at the
same time, it is built once.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treewright.kernel.storage import atomic, file_lock
from treewright.kernel.storage.user_directories import cache_directory
from treewright.lean.hosts.native.host_program import digest
from treewright.lean.hosts.native.toolchain import require_toolchain
from treewright.lean.hosts.wasm.install import installed_path
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.workspace import find_root, is_library
from treewright.lean.session.answers import Declaration
from treewright.lean.session.host_session import HostSession
from treewright.premises import lexical
from treewright.premises.encoder import SentenceEncoder, declaration_in_words
from treewright.premises.index import PremiseIndex
from treewright.premises.store import VECTOR_INDEX, PremiseStore, digest_of
from treewright.premises.vectors import VectorIndex

if TYPE_CHECKING:
    from treewright.lean.choice import Choice

DEFAULT_IMPORTS = ("Init",)
_PAGE = 2000
_VECTORS_AT_ONCE = 500

# (name of the step, number done, total number or 0 if unknown)
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


class BuildReport(msgspec.Struct, frozen=True):
    """The changes that a build made."""

    path: str
    premises: int
    added: int
    changed: int
    removed: int
    embedded: int | None = None


def default_path(
    imports: Sequence[str] = DEFAULT_IMPORTS,
    choice: Choice | None = None,
    start: Path | None = None,
) -> Path:
    """Return the path of the index of a Lean with these imports, in the user's cache.

    Without a choice it is the bundled Lean. Imports from outside Lean's library are those of the
    choice's Lake project, or of the project around `start`.
    """
    if choice is None or choice.backend == "wasm":
        lean = installed_path().name
    else:
        lean = f"native {digest(require_toolchain(choice.project))}"
    parts = [lean, *sorted(set(imports))]
    if not all(map(is_library, imports)):
        own = choice.project if choice is not None else None
        root = own or (find_root(start) if start is not None else None)
        parts += [str(root)] if root is not None else []
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_directory() / "premises" / f"{name}.db"


def build_lexical(
    session: HostSession,
    path: Path,
    *,
    module: str = "",
    limit: int | None = None,
    progress: Progress = silent,
) -> BuildReport:
    """List declarations through Lean and build the lexical index.

    With `module` only that module and those below it are listed; with `limit` at most that many new
    or changed premises are added. Other premises in the file stay.
    """
    with PremiseStore(path, write=True) as store:
        store.set_facts(lean=session.info.lean, imports=list(session.info.imports))
        before = store.known()
        added, changed, seen = 0, 0, set()
        whole = limit is None
        declarations = list_declarations(session, module)
        while page := list(itertools.islice(declarations, _PAGE)):
            fresh = []
            for declaration in page:
                if not is_premise(declaration):
                    continue
                seen.add(declaration.name)
                old = before.get(declaration.name)
                new = digest_of(declaration.name, declaration.type or ""), declaration.module or ""
                if old == new or (limit is not None and added + changed >= limit):
                    continue
                added += old is None
                changed += old is not None
                fresh.append(declaration)
            store.put(fresh)
            progress("premises", len(seen), 0)
            if not whole and added + changed >= (limit or 0):
                break
        gone = [n for n, (_, m) in before.items() if n not in seen and _within(m, module)]
        if whole:
            store.remove(gone)
        if added or changed or (whole and gone) or store.array("ids") is None:
            index_words(store, progress)
        return BuildReport(str(path), len(store), added, changed, len(gone) if whole else 0)


def index_words(store: PremiseStore, progress: Progress = silent) -> None:
    """Build the lexical index of the premises in the file."""
    documents = store.documents()
    progress("lexical index", 0, len(documents))
    index = lexical.build((name, type_text) for _, name, type_text in documents)
    store.put_lexical([identifier for identifier, _, _ in documents], index)
    store.set_facts(digest=store.digest())
    progress("lexical index", len(documents), len(documents))


def build_vectors(path: Path, encoder: SentenceEncoder, *, progress: Progress = silent) -> int:
    """Embed new premises and build the vector index; return how many were embedded."""
    with PremiseStore(path, write=True) as store:
        missing = store.unembedded()
        texts = [declaration_in_words(p.name, p.type) for p in missing]
        done, waiting = 0, []
        for rows, vectors in encoder.encode_batches(texts):
            waiting += [(missing[r].digest, v) for r, v in zip(rows, vectors, strict=True)]
            done += len(rows)
            if len(waiting) >= _VECTORS_AT_ONCE or done == len(missing):
                store.put_vectors(waiting)
                waiting = []
            progress("embeddings", done, len(missing))
        if missing or store.array(VECTOR_INDEX) is None:
            ids, vectors = store.vectors()
            store.put_vector_index(VectorIndex.build(ids, vectors).to_bytes())
        return len(missing)


def _within(module: str, scope: str) -> bool:
    return not scope or module == scope or module.startswith(f"{scope}.")


KINDS = frozenset({"theorem", "axiom", "def", "inductive", "constructor", "opaque"})
_GENERATED_PART = re.compile(
    r"_.*|match_\d+.*|proof_\d+|eq_\d+|eq_def|sizeOf_spec|inj|injEq|noConfusion(Type|Enum)?"
    r"|ctorIdx|toCtorIdx|ctorElim(Type)?|below(_\d+)?|brecOn(_\d+)?|casesOn|recOn|rec(_\d+)?"
    r"|induct(_unfolding)?|fun_cases(_unfolding)?|mutual_induct(_unfolding)?|congr_simp|.*✝.*"
)
_SYNTAX_TYPES = ("Lean.ParserDescr", "Lean.TrailingParserDescr", "Lean.Macro", "Lean.Syntax")


def is_premise(declaration: Declaration) -> bool:
    """Return whether a person wrote the declaration and a proof could mention it."""
    if declaration.kind not in KINDS or not declaration.type:
        return False
    if declaration.type.startswith(_SYNTAX_TYPES):
        return False
    parts = declaration.name.split(".")
    return not any(_GENERATED_PART.fullmatch(part) for part in parts)


def list_declarations(session: HostSession, module: str = "") -> Iterator[Declaration]:
    """Yield every declaration with its type; those that are no premises too, for the progress.

    Types come from the terms and not from Lean's printer, which is twenty times slower. They read
    nearly the same.
    """
    return session.declarations(module=module, types=True, plain=True)


def library_path() -> Path:
    """Return the path of the index of the default imports."""
    return default_path(DEFAULT_IMPORTS)


def ensure_index(
    open_lean: Callable[[], LeanProcesses],
    imports: Sequence[str] = DEFAULT_IMPORTS,
    *,
    path: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    progress: Progress = silent,
) -> Path:
    """Return the path of the index of some imports, and build it if it is missing.

    Args:
        open_lean: Returns the Lean processes that list the declarations.
        imports: The imported modules.
        path: The path of the index, if it is not that of the bundled Lean.
        announce: Is told when the index is built.
        progress: Is told about the progress of building.
    """
    path = path or default_path(imports)
    if is_finished(path):
        return path
    atomic.make_directory(path.parent)
    lock = path.with_suffix(".lock")
    with atomic.storage_errors(lock), file_lock.holding(lock):
        if not is_finished(path):
            announce("listing what the library declares, for the premise index (once)")
            with open_lean() as lean:
                build_lexical(lean.new_session(imports), path, progress=progress)
    return path


def is_finished(path: Path) -> bool:
    """Return whether there is an index that can be searched by words."""
    if not path.is_file():
        return False
    with PremiseIndex.open(path) as index:
        return index.is_searchable


def library_digest() -> str | None:
    """Return the digest of the index of the library, if it is there."""
    if not is_finished(library_path()):
        return None
    with PremiseIndex.open(library_path()) as index:
        return index.digest
