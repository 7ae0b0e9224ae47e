"""The premise index's file: transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from treewright.kernel.errors import StorageError
from treewright.premises.store import PremiseStore


def test_a_transaction_that_sqlite_ended_itself_is_said_as_it_is(small_index: Path) -> None:
    """As SQLite does when the disk is full: the error is that one, not of a second rollback."""

    def fill(store: PremiseStore) -> None:
        with store.transaction():
            store._db.execute("ROLLBACK")
            raise sqlite3.OperationalError("disk full")

    with PremiseStore(small_index, write=True) as store:
        with pytest.raises(StorageError, match="disk full"):
            fill(store)
        store.remove(["Nat.add_comm"])  # and the next one is possible
