"""The library's results, as small classes. Their keys (`to_dict`) are those of the command line's JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any, overload

from . import _ruleguider
from ._tables import Table, rows

_SHOWN = 10


class Result:
    """A result: plain data with names. Results compare, copy and pickle like their data."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> dict[str, Any]:
        """The data, with the keys of the command line's JSON."""
        return copy.deepcopy(self._data)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Result) and other._data == self._data

    def __hash__(self) -> int:
        return hash(json.dumps(self._data, sort_keys=True))


class Step(Result):
    """One step of a path."""

    __slots__ = ()

    @property
    def relation(self) -> str:
        """The relation's name."""
        return self._data["relation"]

    @property
    def inverse(self) -> bool:
        """Whether it was walked from tail to head."""
        return self._data["inverse"]

    @property
    def entity(self) -> str:
        """The entity it led to, by id."""
        return self._data["entity"]

    @property
    def label(self) -> str:
        """The label of that entity, or its id if it has none."""
        return self._data["label"]

    def __repr__(self) -> str:
        relation = self._data.get("relation_label") or self.relation
        return f"←{relation}— {self.label}" if self.inverse else f"—{relation}→ {self.label}"


def _path(data: dict[str, Any]) -> tuple[Step, ...]:
    return tuple(Step(step) for step in data["path"])


def _in_words(data: dict[str, Any]) -> str:
    return " ".join([data["from"], *map(repr, _path(data))]) if data["path"] else ""


class Rule(Result):
    """A rule with its counts, and its body as a path of variables or entities."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """`head <= body`, in AnyBURL's notation."""
        return self._data["text"]

    @property
    def label(self) -> str:
        """The same with entities and relations by their labels."""
        return self._data["label"]

    @property
    def confidence(self) -> float:
        """`correct / (predicted + 5)`."""
        return self._data["confidence"]

    @property
    def correct(self) -> int:
        """How many of its predictions are facts of the graph."""
        return self._data["correct"]

    @property
    def predicted(self) -> int:
        """How many predictions it makes in the graph."""
        return self._data["predicted"]

    @property
    def path(self) -> tuple[Step, ...]:
        """Its body, or the path that grounds it; empty if only its counts are known."""
        return _path(self._data) if "path" in self._data else ()

    def __repr__(self) -> str:
        return f"Rule({self.label!r}, confidence={self.confidence:.3f}, {self.correct} of {self.predicted} true)"


class Supported(Result):
    """A prediction with its score, its probability and the evidence for it."""

    __slots__ = ()

    @property
    def score(self) -> float:
        """Its score; scores of different queries need not be comparable."""
        return self._data["score"]

    @property
    def probability(self) -> float | None:
        """The calibrated probability: the share of such answers that turn out to be held-out facts."""
        return self._data["probability"]

    @property
    def path(self) -> tuple[Step, ...]:
        """The path that supports it."""
        return _path(self._data)

    @property
    def rule(self) -> Rule | None:
        """The rule that the path follows, if it follows one."""
        return Rule(self._data["rule"]) if self._data["rule"] else None

    @property
    def held_out(self) -> str | None:
        """The split that has this fact, if it is a held-out fact of the data."""
        return self._data["held_out"]

    @property
    def _sure(self) -> str:
        return f"score={self.score:.3f}" if self.probability is None else f"probability={self.probability:.3f}"


class Answer(Supported):
    """An answer with its reason."""

    __slots__ = ()

    @property
    def entity(self) -> str:
        """The entity, by id."""
        return self._data["entity"]

    @property
    def label(self) -> str:
        """Its label, or its id if it has none."""
        return self._data["label"]

    @property
    def start(self) -> str:
        """The entity where the path begins, by id."""
        return self._data["from_id"]

    @property
    def reason(self) -> str:
        """Path and rule in one line."""
        return self._data["reason"]

    def __repr__(self) -> str:
        return f"Answer({self.label!r}, {self._sure}, reason={self.reason!r})"


class Asked(Result):
    """A result about a query."""

    __slots__ = ()

    @property
    def subject(self) -> str:
        """The subject of the query, by id."""
        return self._data["subject"]

    @property
    def relation(self) -> str:
        """The relation."""
        return self._data["relation"]

    @property
    def inverse(self) -> bool:
        """Whether the head was asked for."""
        return self._data["inverse"]


class Prediction(Asked, Table, Sequence[Answer]):
    """The answers to a query, best first: a sequence of `Answer`."""

    __slots__ = ()

    @property
    def answers(self) -> list[Answer]:
        """Answers that are not facts of the graph, best first."""
        return [Answer(answer) for answer in self._data["answers"]]

    @property
    def known(self) -> list[str]:
        """Answers that the graph already has, by id."""
        return list(self._data["known_ids"])

    def __len__(self) -> int:
        return len(self._data["answers"])

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        return self.answers[index]

    def columns(self) -> dict[str, list[Any]]:
        """The answers as columns."""
        answers = self.answers
        rules = [answer.rule for answer in answers]
        return {
            "rank": list(range(1, len(answers) + 1)),
            "entity": [answer.entity for answer in answers],
            "label": [answer.label for answer in answers],
            "probability": [answer.probability for answer in answers],
            "score": [answer.score for answer in answers],
            "rule": [rule.text if rule else None for rule in rules],
            "confidence": [rule.confidence if rule else None for rule in rules],
            "held_out": [answer.held_out for answer in answers],
            "reason": [answer.reason for answer in answers],
        }

    def _question(self) -> str:
        return f"? —{self.relation}→ {self.subject}" if self.inverse else f"{self.subject} —{self.relation}→ ?"

    def __repr__(self) -> str:
        columns = self.columns()
        kept = {name: columns[name] for name in ("rank", "label", "probability", "score", "reason")}
        table = rows(kept, _SHOWN) if self else "nothing is predicted"
        known = f"\nknown already: {', '.join(self._data['known'][:10])}" if self._data["known"] else ""
        return f"{self._question()}\n{table}{known}"

    def _repr_html_(self) -> str:
        return _ruleguider.prediction_html(json.dumps(self._data), repr(self))


class Predictions(Table, Sequence[Prediction]):
    """The answers to many queries, in their order: a sequence of `Prediction`, and one table of all answers."""

    __slots__ = ("_all",)

    def __init__(self, every: _ruleguider.Predictions) -> None:
        self._all = every

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Prediction]: ...
    def __getitem__(self, index: int | slice) -> Prediction | list[Prediction]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return Prediction(json.loads(self._all.get(range(len(self))[index])))

    def columns(self) -> dict[str, list[Any]]:
        """All answers as columns; `query` is the number of the query."""
        return self._all.columns()

    def to_dict(self) -> dict[str, Any]:
        """All predictions as plain data."""
        return {"predictions": [prediction.to_dict() for prediction in self]}

    def __repr__(self) -> str:
        return f"Predictions({len(self):,} queries)\n" + "\n\n".join(map(repr, self[:2]))

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - 2:,} more queries</p>" if len(self) > 2 else ""
        return "".join(prediction._repr_html_() for prediction in self[:2]) + more


class Explanation(Asked, Table):
    """Why a fact is predicted, or why not."""

    __slots__ = ()

    @property
    def object(self) -> str:
        """The answer that is explained, by id."""
        return self._data["object"]

    @property
    def known(self) -> bool:
        """Whether the graph already has this fact."""
        return self._data["known"]

    @property
    def held_out(self) -> str | None:
        """The split that has it, if it was held out."""
        return self._data["held_out"]

    @property
    def rank(self) -> int | None:
        """Its rank among the predicted answers, from 1; `None` if it is not predicted."""
        return self._data["rank"]

    @property
    def instead(self) -> Answer | None:
        """The top answer, if it is another one."""
        return Answer(self._data["instead"]) if self._data["instead"] else None

    @property
    def answers(self) -> list[Answer]:
        """The paths to the object."""
        return [Answer(answer) for answer in self._data["answers"]]

    @property
    def rules(self) -> list[Rule]:
        """The rules that predict it, most confident first, each with a path that grounds it."""
        return [Rule(rule) for rule in self._data["rules"]]

    @property
    def plausibility(self) -> float | None:
        """The embedding model's plausibility of it, from 0 to 1, if the run has an embedding model."""
        return self._data["embedding"]["plausibility"] if self._data["embedding"] else None

    def columns(self) -> dict[str, list[Any]]:
        """Its rules and paths as columns."""
        rules, ways = self._data["rules"], self.answers
        return {
            "kind": ["rule"] * len(rules) + ["path"] * len(ways),
            "rule": [rule["text"] for rule in rules] + [way.rule.text if way.rule else None for way in ways],
            "confidence": [rule["confidence"] for rule in rules]
            + [way.rule.confidence if way.rule else None for way in ways],
            "correct": [rule["correct"] for rule in rules] + [way.rule.correct if way.rule else None for way in ways],
            "predicted": [rule["predicted"] for rule in rules]
            + [way.rule.predicted if way.rule else None for way in ways],
            "path": [_in_words(rule) for rule in rules] + [_in_words(way._data) for way in ways],
        }

    def __repr__(self) -> str:
        head, tail = (self.object, self.subject) if self.inverse else (self.subject, self.object)
        if self.known:
            verdict = "a fact of the graph"
        else:
            verdict = f"predicted at rank {self.rank}" if self.rank else "not predicted"
        columns = self.columns()
        kept = {name: columns[name] for name in ("kind", "path", "rule", "confidence")}
        table = f"\n{rows(kept, _SHOWN)}" if columns["kind"] else ""
        instead = f"\nthe best answer instead: {self.instead!r}" if self.instead else ""
        return f"{head} —{self.relation}→ {tail}: {verdict}{table}{instead}"

    def _repr_html_(self) -> str:
        return _ruleguider.explanation_html(json.dumps(self._data), repr(self))


class Fact(Supported):
    """A missing fact with its reason."""

    __slots__ = ()

    @property
    def head(self) -> str:
        """The head, by id."""
        return self._data["head"]

    @property
    def relation(self) -> str:
        """The relation."""
        return self._data["relation"]

    @property
    def tail(self) -> str:
        """The tail, by id."""
        return self._data["tail"]

    @property
    def reason(self) -> str:
        """Path and rule in one line."""
        return self._data["words"]

    def __repr__(self) -> str:
        head, tail = self._data["head_label"], self._data["tail_label"]
        return f"Fact({head!r}, {self.relation!r}, {tail!r}, {self._sure}, reason={self.reason!r})"


class Facts(Result, Table, Sequence[Fact]):
    """Missing facts, best first: a sequence of `Fact`."""

    __slots__ = ()

    @property
    def asked(self) -> int:
        """How many queries were asked for them."""
        return self._data["asked"]

    def __len__(self) -> int:
        return len(self._data["facts"])

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fact]: ...
    def __getitem__(self, index: int | slice) -> Fact | list[Fact]:
        if isinstance(index, slice):
            return [Fact(fact) for fact in self._data["facts"][index]]
        return Fact(self._data["facts"][index])

    def columns(self) -> dict[str, list[Any]]:
        """The facts as columns."""
        facts = self._data["facts"]
        names = ["head", "relation", "tail", "head_label", "tail_label", "probability", "score", "held_out"]
        columns: dict[str, list[Any]] = {name: [fact[name] for fact in facts] for name in names}
        columns["rule"] = [fact["rule"]["text"] if fact["rule"] else None for fact in facts]
        columns["reason"] = [fact["words"] for fact in facts]
        return columns

    def __repr__(self) -> str:
        columns = self.columns()
        kept = {name: columns[name] for name in ("head_label", "relation", "tail_label", "probability", "reason")}
        return f"Facts({len(self):,} missing facts)\n{rows(kept, _SHOWN)}"

    def _repr_html_(self) -> str:
        return _ruleguider.facts_html(json.dumps(self._data["facts"][:100]), len(self), repr(self))


class Completed(Result):
    """The summary of a completion that was written to a file."""

    __slots__ = ()

    @property
    def facts(self) -> int:
        """How many facts were written."""
        return self._data["facts"]

    @property
    def queries(self) -> int:
        """How many queries were asked for them."""
        return self._data["queries"]

    @property
    def seconds(self) -> float:
        """How long it took, not counting earlier interrupted calls."""
        return self._data["seconds"]

    @property
    def out(self) -> str:
        """The file with the facts."""
        return self._data["out"]

    def __repr__(self) -> str:
        return f"Completed({self.facts:,} missing facts from {self.queries:,} queries: {self.out})"


class Evaluation(Result, Table):
    """The ranking figures of a split; fractions, not per cent."""

    __slots__ = ()

    @property
    def mrr(self) -> float:
        """The mean of 1 / rank."""
        return self._data["mrr"]

    @property
    def mean_rank(self) -> float:
        """The mean rank."""
        return self._data["mean_rank"]

    @property
    def queries(self) -> int:
        """How many queries were ranked."""
        return self._data["queries"]

    @property
    def left_out(self) -> int:
        """How many were left out because one of their entities has no fact in the graph."""
        return self._data["left_out"]

    @property
    def direction(self) -> str:
        """Which end was asked for."""
        return self._data["direction"]

    @property
    def seconds(self) -> float:
        """How long asking and ranking took."""
        return self._data["seconds"]

    def hits(self, k: int) -> float:
        """The share of targets with a rank of at most `k`: 1, 3, 5 or 10."""
        if f"hits@{k}" not in self._data:
            raise ValueError(f"hits: expected 1, 3, 5 or 10, found {k}")
        return self._data[f"hits@{k}"]

    def columns(self) -> dict[str, list[Any]]:
        """The figures as columns: of all queries, and of each relation."""
        figures = ["queries", "hits@1", "hits@3", "hits@5", "hits@10", "mrr", "mean_rank"]
        every = [{**self._data, "relation": "all"}, *self._data["relations"]]
        return {name: [row[name] for row in every] for name in ["relation", *figures]}

    def __repr__(self) -> str:
        hits = ", ".join(f"hits@{k}={self.hits(k):.4f}" for k in (1, 3, 10))
        return f"Evaluation(mrr={self.mrr:.4f}, {hits}, queries={self.queries:,}, direction={self.direction!r})"
