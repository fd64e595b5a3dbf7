"""The library's results, as small classes. Their keys (`to_dict`) are those of the command line's JSON."""

from __future__ import annotations

import copy
import html
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _ruleguider
from ._graphs import Drawing, rdflib_graph
from ._tables import Table, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which end of the facts is asked for, and how ties are ranked. Unions, because mypy's stubtest takes a literal of several
# values for one.
Direction = Literal["tail"] | Literal["head"] | Literal["both"]
Ties = Literal["realistic"] | Literal["optimistic"] | Literal["pessimistic"]

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

    @property
    def note(self) -> dict[str, Any]:
        """What the data say about its fact: `confidence`, `source` and `time`, as far as they say it."""
        return dict(self._data.get("note") or {})

    @property
    def confidence(self) -> float | None:
        """How certain its fact is; `None` if the data do not say."""
        return self.note.get("confidence")

    @property
    def source(self) -> str | None:
        """Where its fact comes from; `None` if the data do not say."""
        return self.note.get("source")

    @property
    def time(self) -> str | None:
        """When its fact holds or was stated; `None` if the data do not say."""
        return self.note.get("time")

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


class Case(Result):
    """A known fact that is similar to an answer."""

    __slots__ = ()

    @property
    def entity(self) -> str:
        """The similar entity, by id."""
        return self._data["entity"]

    @property
    def label(self) -> str:
        """Its label, or its id if it has none."""
        return self._data["label"]

    @property
    def like(self) -> str:
        """What it is similar to: the `subject`, and it has the same answer; or the `answer`, and the subject has it too."""
        return self._data["like"]

    @property
    def shared_total(self) -> int:
        """How many facts both have."""
        return int(self._data["shared_total"])

    @property
    def shared(self) -> tuple[Step, ...]:
        """The rarest of the facts that both have."""
        return tuple(Step(step) for step in self._data["shared"])

    def __repr__(self) -> str:
        return f"Case({self.label!r}, shares {self.shared_total} facts with the {self.like})"


class Evidence(Result):
    """A part of a member's share: a rule, a path, a case, a signal or the rest."""

    __slots__ = ()

    @property
    def share(self) -> float:
        """How much of the score it gives."""
        return self._data["share"]

    @property
    def rule(self) -> Rule | None:
        """The rule that predicts the answer, or that the path follows."""
        return Rule(self._data["rule"]) if self._data.get("rule") else None

    @property
    def path(self) -> tuple[Step, ...]:
        """The path."""
        return tuple(Step(step) for step in self._data.get("path", ()))

    @property
    def case(self) -> Case | None:
        """The similar case."""
        return Case(self._data["case"]) if self._data.get("case") else None

    @property
    def signal(self) -> str | None:
        """What the graph says about the candidate: `linked`, `linked_back`, `taken` or `frequency`."""
        return self._data.get("signal")

    @property
    def rest(self) -> bool:
        """Whether it is what no other part explains."""
        return "rest" in self._data

    def __repr__(self) -> str:
        source = self.rule or self.case or self.signal or " ".join(map(repr, self.path)) or "the rest"
        return f"Evidence({self.share:+.3f}, {source})"


class Contribution(Result):
    """A member's share of a score, above that of a typical candidate."""

    __slots__ = ()

    @property
    def member(self) -> str:
        """The member, or `graph` for signals about the candidate."""
        return self._data["member"]

    @property
    def share(self) -> float:
        """Its share; negative if it speaks against the answer."""
        return self._data["share"]

    @property
    def words(self) -> str:
        """The evidence in words."""
        return self._data.get("words", "")

    @property
    def evidence(self) -> list[Evidence]:
        """What the share consists of; empty if that was not looked for."""
        return [Evidence(part) for part in self._data.get("evidence", ())]

    def __repr__(self) -> str:
        words = f", {self.words!r}" if self.words else ""
        return f"Contribution({self.member!r}, {self.share:+.3f}{words})"


class Decomposed(Result):
    """A result whose score is decomposed."""

    __slots__ = ()

    @property
    def typical(self) -> float | None:
        """The score of a typical candidate of the query; `None` if there is no score."""
        return self._data.get("typical")

    @property
    def because(self) -> list[Contribution]:
        """What the score came from, the largest share first; `typical` and the shares add up to the score."""
        return [Contribution(part) for part in self._data.get("because", ())]


class Supported(Decomposed):
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
    def probability_rough(self) -> bool:
        """Whether the probability is rough: calibrated on too little."""
        return bool(self._data.get("probability_rough", False))

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
        if self.probability is None:
            return f"score={self.score:.3f}"
        if not self.probability_rough:
            return f"probability={self.probability:.3f}"
        # As the command line has it: one digit that counts.
        digits = 1 if self.probability >= 0.095 else 2 if self.probability >= 0.0095 else 3
        return "probability=<0.001" if self.probability < 0.0005 else f"probability=~{self.probability:.{digits}f}"


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


class QueryResult(Result):
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


class Prediction(QueryResult, Table, Sequence[Answer]):
    """The answers to a query, best first: a sequence of `Answer`."""

    __slots__ = ()

    @property
    def answers(self) -> list[Answer]:
        """Answers that are not facts of the graph, best first."""
        return [Answer(answer) for answer in self._data["answers"]]

    @property
    def known(self) -> list[str]:
        """Answers that the graph already has, by id: the first 100 of `known_total`."""
        return list(self._data["known_ids"])

    @property
    def known_total(self) -> int:
        """How many answers the graph already has."""
        return int(self._data["known_total"])

    @property
    def held_out(self) -> list[str]:
        """Answers that are in the data but were held out, by id: the first 100 of `held_out_total`."""
        return [answer["entity"] for answer in self._data["held_out"]]

    @property
    def held_out_total(self) -> int:
        """How many answers were held out."""
        return int(self._data["held_out_total"])

    @property
    def unsupported(self) -> int:
        """Where there are fewer answers than asked for: how many other entities there are, which no rule and no path
        supports; else 0."""
        return int(self._data.get("unsupported") or 0)

    @property
    def hint(self) -> str | None:
        """Why the other direction of the relation may have been meant; `None` if this one makes sense."""
        return self._data.get("hint")

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
            "probability_rough": [answer.probability_rough for answer in answers],
            "score": [answer.score for answer in answers],
            "rule": [rule.text if rule else None for rule in rules],
            "confidence": [rule.confidence if rule else None for rule in rules],
            "held_out": [answer.held_out for answer in answers],
            "reason": [answer.reason for answer in answers],
        }

    def to_networkx(self) -> Any:
        """The answers and their reasons as a `networkx.MultiDiGraph`: entities with their `label`; facts of paths; and
        predicted facts, with `predicted=True`, `probability`, `score` and `rule`. The key of an edge is its relation.

        >>> drawn = model.predict("Ilse_Hagenthal", "cousin_of", top=3).to_networkx()
        >>> sum(predicted for _, _, predicted in drawn.edges(data="predicted"))
        3
        """
        drawing = Drawing()
        drawing.entity(self.subject)
        for answer in self._data["answers"]:
            drawing.answer(self._data, answer)
        return drawing.graph

    def to_rdflib(self) -> Any:
        """The predicted facts as an `rdflib.Graph`, each reified: about an `rdf:Statement` of it are its probability, score,
        rule and reason, and the facts that the reason uses."""
        return rdflib_graph([self._data])

    def _question(self) -> str:
        return f"? —{self.relation}→ {self.subject}" if self.inverse else f"{self.subject} —{self.relation}→ ?"

    def __repr__(self) -> str:
        columns = self.columns()
        kept = {name: columns[name] for name in ("rank", "label", "probability", "score", "reason")}
        table = rows(kept, _SHOWN) if self else "nothing is predicted"
        known = f"\nknown already: {', '.join(self._data['known'][:10])}" if self._data["known"] else ""
        others = f"\nno rule and no path supports the other {self.unsupported:,} entities" if self.unsupported else ""
        return f"{self._question()}\n{table}{known}{others}"

    def _repr_html_(self) -> str:
        return _ruleguider.prediction_html(json.dumps(self._data), repr(self))


class Predictions(Table, Sequence[Prediction]):
    """The answers to many queries, in their order: a sequence of `Prediction`, and one table of all answers."""

    __slots__ = ("_all",)

    def __init__(self, every: _ruleguider.Predictions | _Plain) -> None:
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

    def to_rdflib(self) -> Any:
        """All predicted facts as an `rdflib.Graph`, as those of a `Prediction`."""
        return rdflib_graph(json.loads(self._all.get(at)) for at in range(len(self)))

    def to_dict(self) -> dict[str, Any]:
        """All predictions as plain data."""
        return {"predictions": [prediction.to_dict() for prediction in self]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predictions) and len(self) == len(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((len(self), self[0] if len(self) else None))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ([self._all.get(at) for at in range(len(self))], self.columns())

    def __repr__(self) -> str:
        return f"Predictions({len(self):,} queries)\n" + "\n\n".join(map(repr, self[:2]))

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - 2:,} more queries</p>" if len(self) > 2 else ""
        return "".join(prediction._repr_html_() for prediction in self[:2]) + more


class _Plain:
    """Predictions that were pickled: what the compiled ones give, as plain data."""

    __slots__ = ("_columns", "_texts")

    def __init__(self, texts: list[str], columns: dict[str, list[Any]]) -> None:
        self._texts, self._columns = texts, columns

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, index: int) -> str:
        return self._texts[index]

    def columns(self) -> dict[str, list[Any]]:
        return {name: list(column) for name, column in self._columns.items()}


def _unpickled(texts: list[str], columns: dict[str, list[Any]]) -> Predictions:
    return Predictions(_Plain(texts, columns))


class Explanation(QueryResult, Decomposed, Table):
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
    def score(self) -> float | None:
        """Its score; `None` if it is not predicted."""
        return self._data["score"]

    @property
    def probability(self) -> float | None:
        """Its calibrated probability; `None` if it is not predicted, or nothing is calibrated."""
        return self._data["probability"]

    @property
    def probability_rough(self) -> bool:
        """Whether the probability is rough: calibrated on too little."""
        return bool(self._data.get("probability_rough", False))

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
    def rules_total(self) -> int:
        """How many rules predict it altogether."""
        return int(self._data["rules_total"])

    def to_networkx(self) -> Any:
        """What is explained and its reasons as a `networkx.MultiDiGraph`: as that of a `Prediction`, with all paths and the
        groundings of all rules that are listed.

        >>> first = model.predict("Ilse_Hagenthal", "cousin_of")[0]
        >>> drawn = model.explain("Ilse_Hagenthal", "cousin_of", first.entity).to_networkx()
        >>> drawn.edges["Ilse_Hagenthal", first.entity, "cousin_of"]["predicted"]
        True
        """
        drawing = Drawing()
        for way in [*self._data["answers"], *self._data["rules"]]:
            drawing.path(way["from_id"], way["from"], way["path"])
        head, tail = (self.object, self.subject) if self.inverse else (self.subject, self.object)
        about = {"probability": self.probability, "score": self.score}
        drawing.fact(head, tail, self.relation, predicted=not self.known, **about)
        return drawing.graph

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
            if self.probability is not None:
                verdict += f", probability {self.probability:.3f}"
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
    def recovered(self) -> int:
        """How many of the `hidden` facts are at least as probable as those asked for."""
        return self._data["recovered"]

    @property
    def hidden(self) -> int:
        """How many facts of these relations were kept back for the test."""
        return self._data["hidden"]

    @property
    def asked(self) -> int:
        """How many queries were asked for them."""
        return self._data["asked"]

    @property
    def tied(self) -> int:
        """How many of the first facts have the probability of the best. Probabilities rise in steps; facts of a step are in
        the order of their scores."""
        return self._data["tied"]

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

    def to_rdflib(self) -> Any:
        """The facts as an `rdflib.Graph`, each reified: about an `rdf:Statement` of it are its probability, score, rule and
        reason, and the facts that the reason uses."""
        return rdflib_graph(self._data["facts"])

    def columns(self) -> dict[str, list[Any]]:
        """The facts as columns."""
        facts = self._data["facts"]
        names = ["head", "relation", "tail", "head_label", "tail_label", "probability", "score", "held_out"]
        columns: dict[str, list[Any]] = {name: [fact[name] for fact in facts] for name in names}
        columns["probability_rough"] = [fact.get("probability_rough", False) for fact in facts]
        columns["rule"] = [fact["rule"]["text"] if fact["rule"] else None for fact in facts]
        columns["reason"] = [fact["words"] for fact in facts]
        return columns

    def __repr__(self) -> str:
        columns = self.columns()
        kept = {name: columns[name] for name in ("head_label", "relation", "tail_label", "probability", "reason")}
        tied = f"\nthe first {self.tied:,} are equally probable, in the order of their scores" if self.tied >= _SHOWN else ""
        return f"Facts({len(self):,} missing facts)\n{rows(kept, _SHOWN)}{tied}"

    def _repr_html_(self) -> str:
        return _ruleguider.facts_html(json.dumps(self._data["facts"][:100]), len(self), repr(self))


class Listed(Result, Table, Sequence[dict[str, Any]]):
    """Rows with the keys of the command line's JSON: a sequence of dicts, and a table."""

    __slots__ = ()

    # Where the rows are in the data, and the columns of the table.
    _rows = "facts"
    _columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._data[self._rows])

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return copy.deepcopy(self._data[self._rows][index])

    def columns(self) -> dict[str, list[Any]]:
        """The rows as columns; what is nested is in the rows alone."""
        columns = {name: [row.get(name) for row in self._data[self._rows]] for name in self._columns}
        if "probability_rough" in columns:
            # Left out of a row unless it is true.
            columns["probability_rough"] = [rough or False for rough in columns["probability_rough"]]
        return columns

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} rows)\n{rows(self.columns(), _SHOWN)}"


class Scores(Listed):
    """Given facts with their scores, in the order in which they were given."""

    __slots__ = ()

    def to_rdflib(self) -> Any:
        """The facts as an `rdflib.Graph`, each reified: about an `rdf:Statement` of it are its probability, score, rule and
        reason, and the facts that the reason uses. Rows with an error are left out."""
        return rdflib_graph(self._data["facts"])

    _columns = (
        "subject",
        "relation",
        "object",
        "probability",
        "probability_rough",
        "score",
        "rank_tail",
        "rank_head",
        "plausibility",
        "true",
        "known",
        "held_out",
        "words",
        "error",
    )


class Reasons(Listed):
    """The reasons for given facts, a row a reason."""

    __slots__ = ()
    _columns = (
        "line",
        "subject",
        "relation",
        "object",
        "probability",
        "probability_rough",
        "rank",
        "known",
        "place",
        "words",
        "error",
    )


class Relations(Listed):
    """The relations between two entities, best first; those of the graph are in `known`."""

    __slots__ = ()
    _rows = "answers"
    _columns = (
        "relation",
        "probability",
        "probability_rough",
        "plausibility",
        "rank_tail",
        "rank_head",
        "held_out",
        "words",
    )

    @property
    def known(self) -> list[str]:
        """The relations that the graph has already."""
        return list(self._data["known"])


class Doubts(Listed):
    """Facts of the graph that the rest speaks against, worst first."""

    __slots__ = ()
    _columns = ("subject", "relation", "object", "plausibility", "rank_tail", "rank_head", "support")

    @property
    def asked(self) -> int:
        """How many facts were asked."""
        return self._data["asked"]

    def columns(self) -> dict[str, list[Any]]:
        """The facts as columns, with what speaks against them in words."""
        against = [[one["words"] for one in fact["counter_evidence"]] for fact in self._data["facts"]]
        return {**super().columns(), "counter_evidence": ["; ".join(words) for words in against]}


class Completed(Result):
    """The summary of a completion that was written to a file."""

    __slots__ = ()

    @property
    def facts(self) -> int:
        """How many facts were written."""
        return self._data["facts"]

    @property
    def recovered(self) -> int:
        """How many of the `hidden` facts are at least as probable as those asked for."""
        return self._data["recovered"]

    @property
    def hidden(self) -> int:
        """How many facts of these relations were kept back for the test."""
        return self._data["hidden"]

    @property
    def tied(self) -> int:
        """How many of the first facts have the probability of the best; they are in the order of their scores."""
        return self._data["tied"]

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


class Ranks(Result, Table):
    """The rank of every query of an evaluation, in the order of the split (tail before head)."""

    __slots__ = ()

    def columns(self) -> dict[str, list[Any]]:
        """Subject, relation, whether the head was asked for, the true answer, its rank, how many other candidates have its
        score (`ties`), among how many candidates, and whether the link leads to many. With `strata`, also the situation: the length of the shortest path to the answer
        (`None` beyond four), whether the graph has the answer with this relation from another subject, how many edges the
        subject has, and how many rules predict the answer (`None` in a run without rules)."""
        return {name: list(column) for name, column in self._data.items()}

    def __len__(self) -> int:
        return len(self._data["rank"])

    def __repr__(self) -> str:
        return f"Ranks({len(self):,} queries)\n{rows(self.columns(), _SHOWN)}"


class Strata(Listed):
    """Ranking figures by situation: a row a value. `by` says what divides the queries: `distance` from the subject to the
    answer, whether the answer was `seen` with the relation, the `degree` of the subject, or how many `rules` predict it."""

    __slots__ = ()
    _rows = "strata"
    _columns = ("by", "value", "queries", "hits@1", "hits@3", "hits@5", "hits@10", "mrr", "mean_rank")


class Calibration(Result, Table):
    """How reliable probabilities are, in ten bins of equal width: a table with a row a bin."""

    __slots__ = ()

    @property
    def ece(self) -> float:
        """The expected calibration error: the mean of |predicted - observed| over the bins, weighted by their answers."""
        return self._data["ece"]

    @property
    def brier(self) -> float:
        """The mean squared difference between probability and truth."""
        return self._data["brier"]

    def arrays(self, *, empty: bool = False) -> dict[str, NDArray[Any]]:
        """`predicted` and `observed` shares, `count` of answers, and the 95 % interval of the observed share, an array of
        shape (bins, 2). Bins without answers are left out, or NaN with `empty`.

        >>> arrays = model.evaluate(calibration=True, progress=False).calibration.arrays()
        >>> bool((arrays["count"] > 0).all()), arrays["interval"].shape[1]
        (True, 2)
        """
        import numpy

        bins = [one for one in self._data["bins"] if empty or one["answers"]]
        return {
            # None becomes NaN.
            "predicted": numpy.array([one["predicted"] for one in bins], dtype=float),
            "observed": numpy.array([one["observed"] for one in bins], dtype=float),
            "count": numpy.array([one["answers"] for one in bins], dtype=int),
            "interval": numpy.array([one["interval"] or (numpy.nan,) * 2 for one in bins], dtype=float).reshape(-1, 2),
        }

    def columns(self) -> dict[str, list[Any]]:
        """The bins as columns; what cannot be measured without answers is `None`."""
        bins = self._data["bins"]
        columns: dict[str, list[Any]] = {name: [one[name] for one in bins] for name in ("from", "to", "answers", "true")}
        columns.update({name: [one[name] for one in bins] for name in ("predicted", "observed")})
        for place, name in enumerate(("low", "high")):
            columns[name] = [one["interval"][place] if one["interval"] else None for one in bins]
        return columns

    def plot(self, axes: Any = None) -> Any:
        """Observed against predicted shares with their intervals, drawn by matplotlib; the axes."""
        from matplotlib import pyplot

        if axes is None:
            _, axes = pyplot.subplots()
        found = self.arrays()
        below = (found["observed"] - found["interval"][:, 0]).clip(min=0)
        above = (found["interval"][:, 1] - found["observed"]).clip(min=0)
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axes.errorbar(found["predicted"], found["observed"], yerr=[below, above], marker="o", capsize=3)
        title = f"calibration error {self.ece:.4f}, {self._data['answers']:,} answers"
        axes.set(xlabel="predicted", ylabel="observed", xlim=(0, 1), ylim=(0, 1), title=title)
        return axes

    def __repr__(self) -> str:
        return f"Calibration(ece={self.ece:.4f}, brier={self.brier:.4f})\n{rows(self.columns(), _SHOWN)}"


class Evaluation(Result, Table):
    """The ranking figures of a split; fractions, not per cent."""

    __slots__ = ("_ranks",)

    def __init__(self, data: dict[str, Any], ranks: Ranks | None = None) -> None:
        super().__init__(data)
        self._ranks = ranks

    @property
    def ranks(self) -> Ranks:
        """The rank of every query; only where a model was evaluated in this process."""
        if self._ranks is None:
            raise ValueError("ranks: this evaluation has only figures; `Model.evaluate` keeps the ranks")
        return self._ranks

    def _adjusted(self) -> tuple[float, float]:
        """The mean rank, and that of a random order."""
        columns = self.ranks.columns()
        expected = [(candidates + 1) / 2 for candidates in columns["candidates"]]
        count = max(len(expected), 1)
        return sum(columns["rank"]) / count, sum(expected) / count

    @property
    def amr(self) -> float:
        """The adjusted mean rank: the mean rank over that of a random order; 1 is random, less is better."""
        mean, expected = self._adjusted()
        return mean / expected if expected else 0.0

    @property
    def amri(self) -> float:
        """The adjusted mean rank index, as PyKEEN has it: 1 is perfect, 0 is random."""
        mean, expected = self._adjusted()
        return 1 - (mean - 1) / (expected - 1) if expected > 1 else 1.0

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
    def direction(self) -> Direction:
        """Which end was asked for."""
        return self._data["direction"]

    @property
    def tails(self) -> dict[str, float] | None:
        """The figures of the queries for tails, if both ends were asked for."""
        return self._data.get("tails")

    @property
    def heads(self) -> dict[str, float] | None:
        """The figures of the queries for heads, if both ends were asked for."""
        return self._data.get("heads")

    @property
    def baseline(self) -> dict[str, Evaluation]:
        """The same queries without a model: by `popularity`, and by the answers of `similar` subjects."""
        return {name: Evaluation(figures) for name, figures in self._data.get("baseline", {}).items()}

    @property
    def seconds(self) -> float:
        """How long asking and ranking took."""
        return self._data["seconds"]

    def hits(self, k: int) -> float:
        """The share of targets with a rank of at most `k`; without ranks, `k` is 1, 3, 5 or 10."""
        if f"hits@{k}" in self._data:
            return self._data[f"hits@{k}"]
        if self._ranks is None or isinstance(k, bool) or k < 1:
            wanted = "at least 1" if self._ranks is not None else "1, 3, 5 or 10"
            raise ValueError(f"hits: expected {wanted}, found {k}")
        ranked = self._ranks.columns()["rank"]
        return sum(rank <= k for rank in ranked) / max(len(ranked), 1)

    @property
    def calibration(self) -> Calibration | None:
        """How reliable the probabilities are; `None` unless it was asked for (`calibration=True`) and there are any."""
        return Calibration(self._data["calibration"]) if self._data.get("calibration") else None

    @property
    def faithfulness(self) -> dict[str, Any] | None:
        """Whether the reasons shown are the cause of the answers, with the keys of the command line's JSON; `None` unless it
        was asked for, or nothing could be checked."""
        return copy.deepcopy(self._data.get("faithfulness"))

    @property
    def strata(self) -> Strata:
        """The figures by situation, if they were asked for (`strata=True`)."""
        if self._data.get("strata") is None:
            raise ValueError("strata: not measured; `evaluate(strata=True)` does")
        return Strata({"strata": self._data["strata"]})

    def plot(self, most: int = 100) -> Any:
        """Hits@k over k from 1 to `most`, drawn by matplotlib; the axes. With a calibration, its plot stands beside it, and
        the axes are an array of two."""
        from matplotlib import pyplot

        calibration = self.calibration
        _, every = pyplot.subplots(1, 2 if calibration else 1, figsize=(11 if calibration else 6, 4.5))
        axes = every[0] if calibration else every
        places = list(range(1, most + 1))
        axes.plot(places, [self.hits(k) for k in places])
        axes.set(xlabel="k", ylabel="hits@k", ylim=(0, 1), title=f"MRR {self.mrr:.3f}, {self.queries:,} queries")
        if calibration:
            calibration.plot(every[1])
        return every

    def _repr_html_(self) -> str:
        columns = self.columns()
        kept = {name: column[: 1 + _SHOWN] for name, column in columns.items()}
        more = len(columns["relation"]) - len(kept["relation"])
        head = "".join(f"<th>{name}</th>" for name in kept)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*kept.values()))
        note = f"<p>and {more:,} more relations</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def columns(self) -> dict[str, list[Any]]:
        """The figures as columns: of all queries, and of each relation."""
        figures = ["queries", "hits@1", "hits@3", "hits@5", "hits@10", "mrr", "mean_rank"]
        every = [{**self._data, "relation": "all"}, *self._data["relations"]]
        return {name: [row[name] for row in every] for name in ["relation", *figures]}

    def __repr__(self) -> str:
        hits = ", ".join(f"hits@{k}={self.hits(k):.4f}" for k in (1, 3, 10))
        return f"Evaluation(mrr={self.mrr:.4f}, {hits}, queries={self.queries:,}, direction={self.direction!r})"


def _cell(value: Any) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else html.escape(str(value))
    return f"<td>{text}</td>"
