"""Tokens and cost of requests to models, as far as they are known and plausible."""

from __future__ import annotations

import msgspec

from treewright.kernel.text import numbers
from treewright.llm.endpoint import Endpoint

_MOST_USD = 1e6
_MOST_TOKENS = 10**12
"""Larger amounts are errors of the reporter."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens and cost. `unpriced_tokens` are the tokens without a known price.

    They are not part of `cost_usd`, which is then less than the true cost.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
            self.unpriced_tokens + other.unpriced_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def sane_usage(usage: Usage) -> Usage:
    """Return a report of an endpoint or an agent without its impossible values."""
    cost = usage.cost_usd if 0 < usage.cost_usd < _MOST_USD else 0.0
    prompt = plausible_count(usage.prompt_tokens)
    completion = plausible_count(usage.completion_tokens)
    unpriced = min(plausible_count(usage.unpriced_tokens), prompt + completion)
    return Usage(prompt, completion, cost, unpriced)


def plausible_count(count: object) -> int:
    """Return a number of tokens, or 0 for a value that cannot be one."""
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 < count < _MOST_TOKENS else 0


def priced(endpoint: Endpoint, prompt_tokens: object, completion_tokens: object) -> Usage:
    """Return the usage of an answer, with its cost by the endpoint's prices."""
    cost, unpriced = 0.0, 0
    counts = plausible_count(prompt_tokens), plausible_count(completion_tokens)
    prices = endpoint.usd_per_million_prompt_tokens, endpoint.usd_per_million_completion_tokens
    for count, price in zip(counts, prices, strict=True):
        if price is None:
            unpriced += count
        else:
            cost += count * price / 1e6
    return sane_usage(Usage(*counts, cost, unpriced))


_FEWEST_CHARS_PER_TOKEN = 2
"""The lowest ratio in text of people and programs; ordinary prompts have about twice as many."""


def largest_usage(endpoint: Endpoint, prompt: str) -> Usage:
    """Return the largest usage that a request with this prompt can have."""
    tokens = len(prompt) // _FEWEST_CHARS_PER_TOKEN + 1
    return priced(endpoint, tokens, endpoint.max_tokens)


def mark_unpriced(usage: Usage) -> Usage:
    """Return the usage with all tokens unpriced, unless its reporter gave a cost."""
    if usage.cost_usd > 0:
        return usage
    return msgspec.structs.replace(usage, unpriced_tokens=usage.tokens)


def describe_cost(cost_usd: float, unpriced_tokens: int) -> str:
    """Return the cost for people, with the part that is unknown."""
    if not unpriced_tokens:
        return f"{cost_usd:.4f} USD"
    without = f"no price is known for {unpriced_tokens:,} tokens"
    return f"at least {cost_usd:.4f} USD: {without}" if cost_usd else f"unknown: {without}"


def describe_usage(answers: int, usage: Usage) -> str:
    """Return the number of answers, the tokens and the cost for people."""
    tokens = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out"
    cost = describe_cost(usage.cost_usd, usage.unpriced_tokens)
    return f"{numbers.count(answers, 'answer')} of the model: {tokens}; cost {cost}"
