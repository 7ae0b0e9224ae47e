"""One question to an OpenAI-compatible chat endpoint, from asyncio."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any

import msgspec

from treewright.kernel import http_client, jsontext
from treewright.kernel.errors import MissingExtra, TreewrightError

URL_VARIABLE = "TREEWRIGHT_SKETCH_URL"
MODEL_VARIABLE = "TREEWRIGHT_SKETCH_MODEL"
KEY_VARIABLE = "TREEWRIGHT_SKETCH_KEY"


class ChatError(TreewrightError):
    """The endpoint gave no usable answer."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Completion(msgspec.Struct):
    choices: list[_Choice]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. The key is read from the environment for each call and kept nowhere."""

    url: str
    model: str
    temperature: float = 0.2
    max_tokens: int = 1024

    def body(self, prompt: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }


def from_environment() -> Endpoint | None:
    url, model = (os.environ.get(name, "").strip() for name in (URL_VARIABLE, MODEL_VARIABLE))
    return Endpoint(url, model) if url and model else None


def installed() -> bool:
    return importlib.util.find_spec("httpx") is not None


async def ask(endpoint: Endpoint, prompt: str, timeout: float) -> str:
    """The text of the answer."""
    if not installed():
        raise MissingExtra("asking a chat endpoint", "llm")
    key = os.environ.get(KEY_VARIABLE, "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = endpoint.url.rstrip("/") + "/chat/completions"
    try:
        reply = await http_client.post(
            address, endpoint.body(prompt), headers=headers, seconds=timeout
        )
    except http_client.NoReply as none:
        raise ChatError(f"the endpoint {none}") from None
    if not reply.ok:
        raise ChatError(f"the endpoint answered {reply.status}")
    try:
        completion = jsontext.decode(reply.body, type=_Completion)
        return completion.choices[0].message.content or ""
    except (msgspec.DecodeError, IndexError):
        raise ChatError("the endpoint answered with something else than a completion") from None
