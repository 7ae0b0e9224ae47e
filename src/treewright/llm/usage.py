"""What models were asked and what it cost, as far as that is known and can be true."""

from __future__ import annotations

import msgspec

from treewright.kernel.text import numbers
from treewright.llm.endpoint import Endpoint

_MOST_USD = 1e6
_MOST_TOKENS = 10**12
"""What is above these is no count of anything that happened."""


class Usage(msgspec.Struct, frozen=True):
    """What was spent. `unpriced_tokens` of the tokens have no known price: they are not in
    `cost_usd`, which is then less than what was paid."""

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


_NOTHING = Usage()


def sane_usage(usage: Usage) -> Usage:
    """What an endpoint or an agent claims, as far as it can be true: nobody is paid for asking."""
    if usage == _NOTHING:
        return _NOTHING
    cost = usage.cost_usd if 0 < usage.cost_usd < _MOST_USD else 0.0
    prompt, completion = believed(usage.prompt_tokens), believed(usage.completion_tokens)
    unpriced = min(believed(usage.unpriced_tokens), prompt + completion)
    return Usage(prompt, completion, cost, unpriced)


def believed(count: object) -> int:
    """A number of tokens, or 0 for what cannot be one."""
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 < count < _MOST_TOKENS else 0


def priced(endpoint: Endpoint, prompt_tokens: object, completion_tokens: object) -> Usage:
    """What an answer cost by the endpoint's prices; tokens without one are counted as such."""
    cost, unpriced = 0.0, 0
    counts = believed(prompt_tokens), believed(completion_tokens)
    prices = endpoint.usd_per_million_prompt_tokens, endpoint.usd_per_million_completion_tokens
    for count, price in zip(counts, prices, strict=True):
        if price is None:
            unpriced += count
        else:
            cost += count * price / 1e6
    return sane_usage(Usage(*counts, cost, unpriced))


_FEWEST_CHARS_PER_TOKEN = 2
"""Of text that people and programs write; tokens of ordinary prompts are about twice as long."""


def most_of_call(endpoint: Endpoint, prompt: str) -> Usage:
    """What a call may cost at most, as far as that can be said before it is made."""
    tokens = len(prompt) // _FEWEST_CHARS_PER_TOKEN + 1
    return priced(endpoint, tokens, endpoint.max_tokens)


def unpriced_unless_told(usage: Usage) -> Usage:
    """For whoever reports tokens, and a cost only if it knows one."""
    if usage.cost_usd > 0:
        return usage
    return msgspec.structs.replace(usage, unpriced_tokens=usage.tokens)


def describe_cost(cost_usd: float, unpriced_tokens: int) -> str:
    """The cost for people. What is not known is said to be unknown."""
    if not unpriced_tokens:
        return f"{cost_usd:.4f} USD"
    without = f"no price is known for {unpriced_tokens:,} tokens"
    return f"at least {cost_usd:.4f} USD: {without}" if cost_usd else f"unknown: {without}"


def describe_usage(answers: int, usage: Usage) -> str:
    """What a model was asked and used, for people."""
    tokens = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out"
    cost = describe_cost(usage.cost_usd, usage.unpriced_tokens)
    return f"{numbers.count(answers, 'answer')} of the model: {tokens}; cost {cost}"
