"""Premises: declarations that may help with a goal, from a searchable index.

Declarations of a Lean session enter an index file, and ranked premises for a text leave. The
package may import `lean` and `kernel`. Read first: `index.py` (searching), `index_builder.py`
(building, or using the one in the cache), `store.py` (the file).
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.premises.index import PremiseIndex
    from treewright.premises.index_builder import default_path

_PUBLIC = {
    "PremiseIndex": ("treewright.premises.index", "PremiseIndex"),
    "default_path": ("treewright.premises.index_builder", "default_path"),
}

__all__ = [
    "PremiseIndex",
    "default_path",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
