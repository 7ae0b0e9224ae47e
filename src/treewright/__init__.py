"""Treewright grows search trees over work that is slow, costly and easy to lose."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from treewright.kernel.errors import TreewrightError
    from treewright.lean.verify.api import verify
    from treewright.lean.verify.verdict import Certificate, NoVerdict, Verdict
    from treewright.proving.api import prove, resume_proof
    from treewright.proving.records import GoalResult
    from treewright.proving.run import RunResult as ProofResult
    from treewright.runs.columns import Columns, Picture
    from treewright.runs.commit_search import search_commits
    from treewright.runs.compared_runs import compare
    from treewright.runs.comparison import Comparison
    from treewright.runs.proof_run import ProofRun, Simulation, TacticTried
    from treewright.runs.run_loader import load_run
    from treewright.runs.search_run import SearchRun
    from treewright.runs.tree_run import TreeRun
    from treewright.search.durable_search import Search
    from treewright.search.policies.policy import Choice, Policy
    from treewright.search.recorded_search import validate as validate_search
    from treewright.search.study import open_search
    from treewright.search.tasks import EvaluationFailed, Result, Task
    from treewright.search.tree import Node

_PUBLIC = {
    "Columns": ("treewright.runs.columns", "Columns"),
    "Comparison": ("treewright.runs.comparison", "Comparison"),
    "Picture": ("treewright.runs.columns", "Picture"),
    "ProofRun": ("treewright.runs.proof_run", "ProofRun"),
    "SearchRun": ("treewright.runs.search_run", "SearchRun"),
    "Simulation": ("treewright.runs.proof_run", "Simulation"),
    "TacticTried": ("treewright.runs.proof_run", "TacticTried"),
    "TreeRun": ("treewright.runs.tree_run", "TreeRun"),
    "compare": ("treewright.runs.compared_runs", "compare"),
    "load_run": ("treewright.runs.run_loader", "load_run"),
    "search_commits": ("treewright.runs.commit_search", "search_commits"),
    "Certificate": ("treewright.lean.verify.verdict", "Certificate"),
    "GoalResult": ("treewright.proving.records", "GoalResult"),
    "NoVerdict": ("treewright.lean.verify.verdict", "NoVerdict"),
    "ProofResult": ("treewright.proving.run", "RunResult"),
    "TreewrightError": ("treewright.kernel.errors", "TreewrightError"),
    "Verdict": ("treewright.lean.verify.verdict", "Verdict"),
    "prove": ("treewright.proving.api", "prove"),
    "resume_proof": ("treewright.proving.api", "resume_proof"),
    "verify": ("treewright.lean.verify.api", "verify"),
    "EvaluationFailed": ("treewright.search.tasks", "EvaluationFailed"),
    "Result": ("treewright.search.tasks", "Result"),
    "Choice": ("treewright.search.policies.policy", "Choice"),
    "Node": ("treewright.search.tree", "Node"),
    "Policy": ("treewright.search.policies.policy", "Policy"),
    "Search": ("treewright.search.durable_search", "Search"),
    "Task": ("treewright.search.tasks", "Task"),
    "open_search": ("treewright.search.study", "open_search"),
    "validate_search": ("treewright.search.recorded_search", "validate"),
}

__all__ = [
    "Certificate",
    "Choice",
    "Columns",
    "Comparison",
    "EvaluationFailed",
    "GoalResult",
    "NoVerdict",
    "Node",
    "Picture",
    "Policy",
    "ProofResult",
    "ProofRun",
    "Result",
    "Search",
    "SearchRun",
    "Simulation",
    "TacticTried",
    "Task",
    "TreeRun",
    "TreewrightError",
    "Verdict",
    "__version__",
    "compare",
    "load_run",
    "open_search",
    "prove",
    "resume_proof",
    "search_commits",
    "validate_search",
    "verify",
]


def __dir__() -> list[str]:
    """For completion: what is public, imported or not yet, and nothing else."""
    return __all__


if not TYPE_CHECKING:  # a name that is not there is an error for type checkers

    def __getattr__(name: str) -> Any:
        """Imported when first used: the command line starts without them."""
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module, attribute = _PUBLIC[name]
        return getattr(import_module(module), attribute)
