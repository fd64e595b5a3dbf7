"""A served run from Python: questions, facts and verdicts over HTTP, with nothing but the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

GivenFact = tuple[str, str, str] | Mapping[str, Any]
# A union, because mypy's stubtest takes a literal of several values for one.
Verdict = Literal["accept"] | Literal["reject"] | Literal["unsure"] | Literal["undo"]

#: The most facts of a request.
AT_ONCE = 10_000


class ServerError(Exception):
    """What the server refused, and why."""

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(f"{detail} (status {status})")
        self.status = status
        self.detail = detail
        self.kind = kind


class Client:
    """A run that ``ruleguider serve`` serves.

    Args:
        url: The address that ``serve`` prints.
        token: A token of ``ruleguider live token``, if the server wants one.
        run: The name of the run; by default the first one.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None = None, run: str | None = None, timeout: float = 60.0) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        if run is None:
            runs = self._json("GET", "/api/v1/runs")["runs"]
            run = str(runs[0]["name"])
        self.run = run

    def predict(self, subject: str, relation: str, top: int = 10, inverse: bool = False) -> dict[str, Any]:
        """The best answers to (subject, relation, ?), each with its reason."""
        return self._ask("predict", subject=subject, relation=relation, top=top, inverse=str(inverse).lower())

    def explain(self, subject: str, relation: str, object: str) -> dict[str, Any]:  # noqa: A002
        """Why a fact is predicted, or why not."""
        return self._ask("explain", subject=subject, relation=relation, object=object)

    def standing(self) -> dict[str, Any]:
        """Who this is, what is allowed, and how many changes there are."""
        return self._ask("live")

    def add(self, facts: Iterable[GivenFact], key: str | None = None) -> int:
        """Adds facts, as triples or as mappings that may have ``confidence`` and ``source``. They are on the server's
        disk when this returns. Returns how many were new. Sent in parts of 10,000, each whole or not at all; with
        ``key``, sending the same again writes nothing twice."""
        return self._write("POST", "live/facts", map(_given, facts), key)

    def remove(self, facts: Iterable[GivenFact], key: str | None = None) -> int:
        """Removes facts. Returns how many there were."""
        return self._write("DELETE", "live/facts", map(_given, facts), key)

    def decide(self, fact: GivenFact, verdict: Verdict, note: str | None = None, who: str | None = None) -> int:
        """Accepts or rejects a fact, is unsure about it, or takes the verdict back (``undo``). Returns whether that
        changed anything."""
        body = {**_given(fact), "verdict": verdict}
        body.update({name: text for name, text in (("note", note), ("who", who)) if text is not None})
        return self._write("POST", "live/verdicts", iter([body]), None)

    def verdicts(self) -> list[dict[str, Any]]:
        """The facts that were decided, each with the verdicts that count."""
        items: list[dict[str, Any]] = self._ask("live/verdicts")["items"]
        return items

    def queue(self, relation: str | None = None, limit: int = 20) -> list[dict[str, Any]]:
        """What to look at next, of one relation or of all: suggestions that were not decided, each with why it is there."""
        of = {} if relation is None else {"relation": relation}
        items: list[dict[str, Any]] = self._ask("live/queue", **of, limit=limit)["items"]
        return items

    def agreement(self) -> dict[str, Any]:
        """How far reviewers agree with each other, and with the model by its probability."""
        return self._ask("live/agreement")

    def changes(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Everything that was said after entry number ``after``, in order."""
        while True:
            page = self._ask("live/changes", after=after, limit=1000)
            yield from page["items"]
            after = page["next"]
            if not page["items"]:
                return

    def reload(self, run: str | None = None) -> str:
        """Lets the server answer by the run in the folder ``run`` beside the one it serves. Returns its name."""
        body = json.dumps({} if run is None else {"run": run}).encode()
        return str(self._json("POST", f"/api/v1/{self._quoted()}/live/reload", body)["run"])

    def _quoted(self) -> str:
        return urllib.parse.quote(self.run, safe="")

    def _ask(self, route: str, **parameters: object) -> dict[str, Any]:
        query = urllib.parse.urlencode({name: str(value) for name, value in parameters.items()})
        return self._json("GET", f"/api/v1/{self._quoted()}/{route}" + (f"?{query}" if query else ""))

    def _write(self, method: str, route: str, objects: Iterator[dict[str, Any]], key: str | None) -> int:
        changed = 0
        # A part that has to be sent again, since its answer was lost, is written once.
        key = key or uuid.uuid4().hex
        for part, lines in enumerate(_parts(objects)):
            path = f"/api/v1/{self._quoted()}/{route}"
            changed += int(self._json(method, path, lines.encode(), f"{key}-{part}")["changed"])
        return changed

    def _json(self, method: str, path: str, body: bytes | None = None, key: str | None = None) -> dict[str, Any]:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        if body is not None:
            request.add_header("Content-Type", "application/x-ndjson")
        if key is not None:
            request.add_header("Idempotency-Key", key)
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None


def _refusal(error: urllib.error.HTTPError) -> ServerError:
    try:
        said = json.load(error)
        return ServerError(error.code, said["detail"], said["type"].rpartition(":")[2])
    except (ValueError, KeyError):
        return ServerError(error.code, str(error.reason))


def _given(fact: GivenFact) -> dict[str, Any]:
    if isinstance(fact, Mapping):
        return dict(fact)
    subject, relation, object_ = fact
    return {"subject": subject, "relation": relation, "object": object_}


def _parts(objects: Iterator[dict[str, Any]]) -> Iterator[str]:
    lines: list[str] = []
    for one in objects:
        lines.append(json.dumps(one, ensure_ascii=False))
        if len(lines) == AT_ONCE:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
