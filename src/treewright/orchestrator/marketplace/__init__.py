"""Lemmas that somebody needs: tickets, and the marketplace that fills them."""

from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.marketplace.tickets import TicketStatus

__all__ = ["Marketplace", "TicketStatus"]
