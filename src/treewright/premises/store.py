"""The file of a premise index: one SQLite database.

Tables: `premises` (the listed declarations), `vectors` (embeddings by the digest of their text, so
that only new texts are embedded), `arrays` (the lexical index and the vector index, replaced in one
transaction), `facts` (the Lean, its imports, the finished steps).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage import database
from treewright.kernel.text import jsontext
from treewright.lean.session.answers import Declaration
from treewright.premises.lexical import LexicalIndex

VECTOR_INDEX = "faiss"
_WAIT_SECONDS = 60.0
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE premises (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, module TEXT NOT NULL,
    type TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE arrays (name TEXT PRIMARY KEY, data BLOB NOT NULL)
"""

SCHEMA = database.Schema(
    "premise index",
    0x54575049,  # "TWPI"
    _TABLES,
    remedy="delete it and run: treewright premises build",
)


class StoredPremise(msgspec.Struct, frozen=True):
    """A premise as the file has it."""

    id: int
    name: str
    kind: str
    module: str
    type: str
    digest: bytes


def digest_of(name: str, type_text: str) -> bytes:
    """Return the digest that identifies the embedded text."""
    return hashlib.sha256(f"{name}\0{type_text}".encode()).digest()[:16]


class PremiseStore:
    """Reads and writes one index file. Several threads may use it, one at a time."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        self._lock = threading.RLock()
        if not write and not path.is_file():
            raise UsageError(
                f"there is no premise index at {path}; make it with: "
                f"treewright premises build --path {shlex.quote(str(path))}"
            )
        with self._errors():
            if write:  # no WAL: an index is also read from read-only directories
                self._db = database.open_database(path, SCHEMA, _WAIT_SECONDS, wal=False)
            else:
                self._db = database.open_read_only(path, SCHEMA, _WAIT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _errors(self) -> AbstractContextManager[None]:
        return database.readable_errors(self.path, SCHEMA.what, _WAIT_SECONDS)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything in the block, or nothing."""
        with self._lock, self._errors(), database.transaction(self._db):
            yield

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple]:
        with self._lock, self._errors():
            return self._db.execute(statement, values).fetchall()

    # -- facts ----------------------------------------------------------------------------

    def fact(self, name: str) -> object | None:
        """Return a fact, or None if it is not recorded."""
        rows = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return jsontext.decode(rows[0][0]) if rows else None

    def set_facts(self, **facts: object) -> None:
        """Record facts."""
        with self._lock, self._errors():
            self._db.executemany(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )

    # -- premises -------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._rows("SELECT count(*) FROM premises")[0][0]

    def known(self) -> dict[str, tuple[bytes, str]]:
        """Return the digest and the module of every premise, by name."""
        rows = self._rows("SELECT name, digest, module FROM premises")
        return {name: (digest, module) for name, digest, module in rows}

    def put(self, declarations: Iterable[Declaration]) -> None:
        """Add declarations, or replace those of the same names."""
        rows = [
            (d.name, d.kind, d.module or "", d.type, digest_of(d.name, d.type or ""))
            for d in declarations
        ]
        with self.transaction():
            self._db.executemany(
                "INSERT INTO premises (name, kind, module, type, digest) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, "
                "module = excluded.module, type = excluded.type, digest = excluded.digest",
                rows,
            )

    def remove(self, names: Iterable[str]) -> None:
        """Remove premises, and the embeddings that no premise has."""
        with self.transaction():
            self._db.executemany("DELETE FROM premises WHERE name = ?", [(n,) for n in names])
            self._db.execute(
                "DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM premises)"
            )

    def documents(self) -> list[tuple[int, str, str]]:
        """Return (id, name, type) of every premise, in order of id."""
        return self._rows("SELECT id, name, type FROM premises ORDER BY id")

    def digest(self) -> str:
        """Return the digest of everything that a ranking by words depends on."""
        found = hashlib.sha256()
        for row in self._rows("SELECT digest FROM premises ORDER BY id"):
            found.update(row[0])
        return found.hexdigest()

    def premise(self, identifier: int) -> StoredPremise:
        """Return a premise. Raises StorageError if it was removed meanwhile."""
        rows = self._rows(
            "SELECT id, name, kind, module, type, digest FROM premises WHERE id = ?", (identifier,)
        )
        if not rows:
            raise StorageError(f"{self.path} changed meanwhile; open the index again")
        return StoredPremise(*rows[0])

    # -- embeddings -----------------------------------------------------------------------

    def unembedded(self) -> list[StoredPremise]:
        """Return the premises without an embedding."""
        rows = self._rows(
            "SELECT id, name, kind, module, type, digest FROM premises "
            "WHERE digest NOT IN (SELECT digest FROM vectors) ORDER BY id"
        )
        return [StoredPremise(*row) for row in rows]

    def put_vectors(self, items: Iterable[tuple[bytes, npt.NDArray[np.float32]]]) -> None:
        """Add embeddings by the digests of their texts."""
        rows = [(digest, vector.astype(np.float16).tobytes()) for digest, vector in items]
        with self.transaction():
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def vectors(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the ids and embeddings of every premise that has one."""
        rows = self._rows("SELECT id, vector FROM premises JOIN vectors USING (digest) ORDER BY id")
        ids = np.array([row[0] for row in rows], dtype=np.int64)
        data = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float16)
        return ids, data.reshape(max(len(rows), 1), -1).astype(np.float32)

    # -- derived arrays -------------------------------------------------------------------

    def put_lexical(self, ids: Sequence[int], index: LexicalIndex) -> None:
        """Replace the lexical index; the vector index has to be built again."""
        vocabulary = sorted(index.vocabulary, key=lambda term: index.vocabulary[term])
        arrays = {
            "ids": np.asarray(ids, dtype=np.int64).tobytes(),
            "terms": "\0".join(vocabulary).encode(),
            "starts": index.starts.tobytes(),
            "rows": index.rows.tobytes(),
            "weights": index.weights.tobytes(),
        }
        with self.transaction():
            self._db.executemany("INSERT OR REPLACE INTO arrays VALUES (?, ?)", arrays.items())
            # The vector index has other premises, so it has to be built again.
            self._db.execute("DELETE FROM arrays WHERE name = ?", (VECTOR_INDEX,))

    def put_vector_index(self, data: bytes) -> None:
        """Replace the vector index."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO arrays VALUES (?, ?)", (VECTOR_INDEX, data))

    def array(self, name: str) -> bytes | None:
        """Return an array, or None if it was not built."""
        rows = self._rows("SELECT data FROM arrays WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def lexical(self) -> tuple[npt.NDArray[np.int64], LexicalIndex]:
        """Return the ids of the rows, and the lexical index."""
        names = ("ids", "terms", "starts", "rows", "weights")
        found = dict(
            self._rows(
                f"SELECT name, data FROM arrays WHERE name IN ({', '.join('?' * len(names))})",  # noqa: S608
                names,
            )
        )
        if len(found) < len(names):
            raise UsageError(
                f"the premise index {self.path} was never finished; run again: "
                "treewright premises build"
            )
        ids = np.frombuffer(found["ids"], dtype=np.int64)
        terms = found["terms"].decode().split("\0") if found["terms"] else []
        index = LexicalIndex(
            size=len(ids),
            vocabulary={term: number for number, term in enumerate(terms)},
            starts=np.frombuffer(found["starts"], dtype=np.int64),
            rows=np.frombuffer(found["rows"], dtype=np.int32),
            weights=np.frombuffer(found["weights"], dtype=np.float32),
        )
        return ids, index
