"""The lemma marketplace: requests for lemmas as tickets, and their checked proofs.

Requests and proofs enter; tickets leave. The package may import `ledger`, `goals`, `lean`,
`premises` and `kernel`. Read `market.py` first, then `tickets.py`.
"""

from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.marketplace.tickets import TicketStatus

__all__ = ["Marketplace", "TicketStatus"]
