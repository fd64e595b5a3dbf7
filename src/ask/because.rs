//! What the score of an answer came from, with names: as scripts see it, and in words.

use super::answer::{PathStep, RuleSummary};
use super::sentence::counts_sentence;
use super::{AskError, Model, Naming};
use crate::embed::ModelKind;
use crate::graph::{EntityId, Graph, Link, Query};
use crate::reason::{
    Because, Candidate, Case, CaseSide, Detail, Found, GraphFeature, Hop, MemberShare, SharePart, ShareSource,
};
use crate::rule::ScoredRule;
use serde::{Deserialize, Serialize};

/// The most facts that a similar case names of those that it shares.
const SHARED: usize = 5;
/// The most cases that a sentence names.
const NAMED: usize = 3;
/// Cases that leave out a smaller part of an embedding model's share tell it.
const TOLD: f64 = 0.25;
/// The vectors of a trained model hold its facts, also where the graph has them no more.
const NO_CAUSE: &str = "without these facts it says nearly the same";

/// A member's share of an answer's score. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// The member: `rules`, `walker`, `embedding`, `propagator`, the name of a further one, or `graph` for features about
    /// the candidate.
    pub member: String,
    /// How much of the score, above that of a typical candidate, it gives; negative if it speaks against the answer.
    pub share: f64,
    /// The evidence in words; empty if there is none, or it was not looked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// What the share consists of; the shares add up to it. Empty if that was not looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceShare>,
}

/// A part of a member's share: one of rule, path, case, feature and rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvidenceShare {
    /// How much it is.
    pub share: f64,
    /// A rule that predicts the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleSummary>,
    /// The confidence that the rule alone gives the answer: smoothed, and less for weak rule types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
    /// How many paths the rule has to the answer, at most 100; absent if they were not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<usize>,
    /// The path, or the first of the rule's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathStep>,
    /// The label of the entity where the path begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// A similar case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<SimilarCase>,
    /// What the graph says about the candidate: `linked`, `linked_back`, `taken`, `frequency`, `types` or `relations`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// What no other part explains: how many further rules are in it, or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<usize>,
}

/// A known fact that is similar to the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarCase {
    /// The similar entity, by id.
    pub entity: String,
    /// Its label, or its id if it has none.
    pub label: String,
    /// Whether it is similar to the `subject`, and has the same answer, or to the `answer`, and the subject has it too.
    pub like: String,
    /// Its weight in the combination of cases.
    pub weight: f64,
    /// How many facts both have.
    pub shared_total: usize,
    /// The rarest of them, each from the similar entity.
    pub shared: Vec<PathStep>,
}

impl Model {
    /// What the scores of candidates of `found` came from: for each the score of a typical candidate, and the members'
    /// shares of the rest.
    pub(super) fn because(
        &self,
        found: &Found,
        chosen: &[EntityId],
        detail: Detail,
    ) -> Result<Vec<(f64, Vec<Contribution>)>, AskError> {
        let candidate = |entity: &EntityId| found.candidates.iter().find(|one| one.entity == *entity);
        let chosen: Vec<&Candidate> = chosen.iter().filter_map(candidate).collect();
        let all = self.reasoner.because(found, &chosen, detail)?;
        let named =
            |(one, because): (&&Candidate, &Because)| self.contributions(found.query, one.entity, because);
        Ok(chosen.iter().zip(&all).map(named).collect())
    }

    /// What the score of an answer came from, with names: the score of a typical candidate, and the members' shares.
    pub(super) fn contributions(
        &self,
        query: Query,
        answer: EntityId,
        Because { typical, members }: &Because,
    ) -> (f64, Vec<Contribution>) {
        (*typical, members.iter().map(|one| self.contribution(query, answer, one)).collect())
    }

    fn contribution(&self, query: Query, answer: EntityId, given: &MemberShare) -> Contribution {
        Contribution {
            member: given.member.to_owned(),
            share: given.share,
            words: self.share_in_words(query, answer, given),
            evidence: given.parts.iter().map(|part| self.evidence(part.share, &part.source)).collect(),
        }
    }

    fn evidence(&self, share: f64, source: &ShareSource) -> EvidenceShare {
        let names = self.names();
        let bare = EvidenceShare { share, ..EvidenceShare::default() };
        match source {
            ShareSource::Rule { rule, alone, groundings } => {
                let first = groundings.first();
                EvidenceShare {
                    rule: Some(RuleSummary::new(rule, names, self.naming())),
                    alone: Some(*alone),
                    paths: first.map(|_| groundings.len()),
                    path: first.map_or_else(Vec::new, |way| self.steps(way.start, &way.path)),
                    from: first.map(|way| names.label(way.start).to_owned()),
                    ..bare
                }
            }
            ShareSource::Path(way) => EvidenceShare {
                path: self.steps(way.start, &way.path),
                from: Some(names.label(way.start).to_owned()),
                rule: way.rule.as_ref().map(|rule| RuleSummary::new(rule, names, self.naming())),
                ..bare
            },
            ShareSource::Case(case) => EvidenceShare { case: Some(self.case(case)), ..bare },
            ShareSource::Feature(feature) => EvidenceShare { feature: Some(feature.to_string()), ..bare },
            ShareSource::Rest(rules) => EvidenceShare { rest: Some(*rules), ..bare },
        }
    }

    fn case(&self, case: &Case) -> SimilarCase {
        let names = self.names();
        let hop = |&(link, target): &(Link, EntityId)| Hop { link, target, scores: None };
        let shared = case.shared.iter().take(SHARED);
        // Each is a fact of the similar entity, not a hop of one path.
        let shared = shared.flat_map(|step| self.steps(case.entity, &[hop(step)]));
        SimilarCase {
            entity: names.entity(case.entity).to_owned(),
            label: names.label(case.entity).to_owned(),
            like: match case.side {
                CaseSide::Subject => "subject",
                CaseSide::Answer => "answer",
            }
            .to_owned(),
            weight: case.weight,
            shared_total: case.shared.len(),
            shared: shared.collect(),
        }
    }

    /// The evidence of a member in words.
    fn share_in_words(&self, query: Query, answer: EntityId, given: &MemberShare) -> String {
        let (mut rules, mut best, mut cases, mut paths) = (0, None, Vec::new(), 0);
        let mut features = Vec::new();
        for part in &given.parts {
            match &part.source {
                ShareSource::Rule { rule, groundings, .. } => {
                    rules += 1;
                    best = best.or(Some((rule, groundings.len())));
                }
                ShareSource::Path(_) => paths += 1,
                // A case that speaks against the answer is listed, but it is no likeness.
                ShareSource::Case(case) if part.share > 0.0 => cases.push(case),
                ShareSource::Rest(others) => rules += others,
                ShareSource::Feature(feature) if part.share > 0.0 => features.push(*feature),
                ShareSource::Case(_) | ShareSource::Feature(_) => {}
            }
        }
        if given.share < 0.0 {
            return self.against_in_words(query, answer, given, best.map(|(rule, _)| rule));
        }
        match best {
            Some((rule, along)) => rules_in_words(rules, rule, along, given.together),
            None if !cases.is_empty() => {
                let how = inexact(self.config().embed.model, given);
                let said = [Some(self.cases_in_words(&cases)), how, Some(NO_CAUSE.to_owned())];
                said.into_iter().flatten().collect::<Vec<String>>().join("; ")
            }
            None if paths > 1 => format!("{paths} paths"),
            None if given.share > 0.0 => {
                let mut words = features_in_words(self.graph(), query, answer, &features);
                words.extend(self.kind_in_words(query, answer, &features));
                words.join("; ")
            }
            None => String::new(),
        }
    }

    /// Why a member speaks against an answer. Its evidence may still be for it, but is weaker than that of a typical
    /// candidate.
    fn against_in_words(
        &self,
        query: Query,
        answer: EntityId,
        given: &MemberShare,
        best: Option<&ScoredRule>,
    ) -> String {
        let against = |part: &SharePart| match part.source {
            ShareSource::Feature(feature) if part.share < 0.0 => Some(feature),
            _ => None,
        };
        let features: Vec<GraphFeature> = given.parts.iter().filter_map(against).collect();
        match (best, given.member) {
            (Some(rule), _) => {
                format!(
                    "less than for a typical candidate: its best rule was right in {}",
                    counts_sentence(rule)
                )
            }
            (None, "rules") => "less than for a typical candidate".to_owned(),
            (None, "embedding") => "less plausible than a typical candidate".to_owned(),
            (None, "graph") => features_against(self.graph(), query, answer, &features),
            (None, _) => "its paths count less than those of a typical candidate".to_owned(),
        }
    }

    /// What the types of an answer, and the relations that it has, say for it.
    fn kind_in_words(&self, query: Query, answer: EntityId, features: &[GraphFeature]) -> Option<String> {
        let by_type = || {
            let (of, with, all) = self.artifacts.kinds().best_type(query.link, answer)?;
            let name = self.names().types.label(of);
            Some(format!("{with} of {all} other entities of type {name} are answers"))
        };
        let by_relations = || "entities with its relations are answers more often than others".to_owned();
        let has = |feature| features.contains(&feature);
        let told = if has(GraphFeature::Types) { by_type() } else { None };
        let fits = || self.artifacts.kinds().fit(query.link, answer)[1] > 0.0;
        told.or_else(|| (has(GraphFeature::Relations) && fits()).then(by_relations))
    }

    fn cases_in_words(&self, cases: &[&Case]) -> String {
        let (names, naming) = (self.names(), self.naming());
        let name = |case: &&Case| naming.of(case.entity, names);
        let mut listed: Vec<String> = cases.iter().take(NAMED).map(name).collect();
        let last = listed.pop().unwrap_or_default();
        let listed = if listed.is_empty() { last } else { format!("{} and {last}", listed.join(", ")) };
        let counts = || cases.iter().take(NAMED).map(|case| case.shared.len());
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let one = cases.len() == 1;
        let shares = match (one, fewest == most) {
            (true, _) => format!("shares {}", facts(most)),
            (false, true) => format!("each share {}", facts(most)),
            (false, false) => format!("share {fewest} to {}", facts(most)),
        };
        match cases[0].side {
            CaseSide::Subject => {
                let have = if one { "has" } else { "have" };
                format!("the subject is similar to {listed}, which {have} this answer and {shares} with it")
            }
            CaseSide::Answer => {
                let are = if one { "is a known answer" } else { "are known answers" };
                format!("the answer is similar to {listed}, which {are} and {shares} with it")
            }
        }
    }
}

/// What the cases of an embedding model's share leave out; `None` if they are nearly all of it. For RotatE and ConvE, of
/// which a combination of subjects is never the whole, it is always said.
fn inexact(model: ModelKind, given: &MemberShare) -> Option<String> {
    let of_cases = |part: &SharePart| match part.source {
        ShareSource::Case(_) => part.share,
        _ => 0.0,
    };
    let said = given.parts.iter().map(of_cases).sum::<f64>() / given.share;
    let how_much = format!("these cases make {said:.1} times its share");
    let like_subject =
        |part: &SharePart| matches!(&part.source, ShareSource::Case(case) if case.side == CaseSide::Subject);
    let why = match model {
        // What the network makes of the subjects is compared, not the subjects.
        ModelKind::ConvE if given.parts.iter().any(like_subject) => {
            "ConvE compares them through its network, not by themselves"
        }
        ModelKind::RotatE => "RotatE measures distances, of which cases explain a part",
        ModelKind::ConvE | ModelKind::ComplEx | ModelKind::DistMult => "",
    };
    let loss = (said - 1.0).abs() > TOLD;
    match (why.is_empty(), loss) {
        (true, true) => Some(format!("{how_much}, so they are an approximation")),
        (true, false) => None,
        (false, _) => Some(format!("{why}; {how_much}")),
    }
}

/// What the graph says for an answer, whoever the subject is.
fn features_in_words(
    graph: &Graph,
    query: Query,
    answer: EntityId,
    features: &[GraphFeature],
) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if features.contains(&GraphFeature::LinkedBack) {
        words.push("the same relation leads back".to_owned());
    } else if features.contains(&GraphFeature::Linked) {
        words.push("both are linked by some relation".to_owned());
    }
    if features.iter().any(|feature| [GraphFeature::Taken, GraphFeature::Frequency].contains(feature)) {
        words.push(popularity(graph, query, answer));
    }
    words
}

/// What the graph says against an answer, whoever the subject is.
fn features_against(graph: &Graph, query: Query, answer: EntityId, features: &[GraphFeature]) -> String {
    let links = |link: fn(Link, Link) -> bool| {
        graph.edges(query.subject).iter().any(|edge| edge.target == answer && link(edge.link, query.link))
    };
    let mut words: Vec<String> = Vec::new();
    if features.contains(&GraphFeature::LinkedBack) && links(|own, asked| own == asked.reversed()) {
        words.push("the same relation leads back already".to_owned());
    } else if features.contains(&GraphFeature::Linked) {
        let linked = links(|own, asked| own != asked);
        words.push(if linked { "both are linked already" } else { "nothing links both yet" }.to_owned());
    }
    if features.iter().any(|feature| [GraphFeature::Taken, GraphFeature::Frequency].contains(feature)) {
        words.push(popularity(graph, query, answer));
    }
    if features.iter().any(|feature| [GraphFeature::Types, GraphFeature::Relations].contains(feature)) {
        words.push("its kind".to_owned());
    }
    match words.is_empty() {
        true => String::new(),
        false => format!("against it: {}", words.join("; ")),
    }
}

/// For how many others it is an answer.
fn popularity(graph: &Graph, query: Query, answer: EntityId) -> String {
    // The subject itself does not count, also where its fact is in the graph.
    let times = graph.targets(answer, query.link.reversed()).len()
        - usize::from(graph.contains(query.subject, query.link, answer));
    let others = graph.pairs(query.link).sources.len()
        - usize::from(!graph.targets(query.subject, query.link).is_empty());
    let share = percent(times as f64 / others.max(1) as f64);
    format!("it is an answer for {times} of {others} others, {share}")
}

/// `1 fact`, `12 facts`.
fn facts(count: usize) -> String {
    format!("{count} fact{}", if count == 1 { "" } else { "s" })
}

/// `14 paths, 3 rules: the first was right in 130 of 374 such cases (0.348); all together, smoothed, say 41 %`.
fn rules_in_words(rules: usize, first: &ScoredRule, along: usize, together: Option<f64>) -> String {
    let paths = if along > 1 { format!("{along} paths, ") } else { String::new() };
    let right = format!("was right in {}", counts_sentence(first));
    match together.filter(|_| rules > 1) {
        Some(together) => {
            format!(
                "{paths}{rules} rules: the first {right}; all together, smoothed, say {}",
                percent(together)
            )
        }
        None if rules > 1 => format!("{paths}the first of {rules} rules {right}"),
        None => format!("{paths}one rule {right}"),
    }
}

/// A share of one as a percentage with two digits.
fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 9.95 => format!("{small:.1} %"),
        // Hardly anything is certain.
        near if near > 99.5 && near < 100.0 => format!("{:.1} %", (10.0 * near).floor() / 10.0),
        large => format!("{large:.0} %"),
    }
}

/// The contributions in one line: `embedding +2.31 (the subject is similar to …), rules +0.41 (…), graph −0.10`.
pub fn because_in_words(because: &[Contribution]) -> String {
    let one = |Contribution { member, share, words, .. }: &Contribution| {
        let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
        format!("{member} {}{words}", signed(*share))
    };
    let parts = |least: f64| {
        let told = because.iter().filter(|part| part.share.abs() >= least);
        told.map(one).collect::<Vec<String>>().join(", ")
    };
    // What would read as 0.00 is left out, unless there is nothing else.
    let told = parts(0.005);
    if told.is_empty() { parts(0.0) } else { told }
}

/// A share with its sign.
pub fn signed(share: f64) -> String {
    let sign = if share < 0.0 { '−' } else { '+' };
    format!("{sign}{:.2}", share.abs())
}

impl SimilarCase {
    /// Its display name.
    pub fn name(&self, naming: &Naming) -> String {
        naming.name(&self.label, &self.entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{RelationId, Triple};
    use crate::rule::{Counts, Rule};

    #[test]
    fn rules_are_told_by_their_counts_and_smoothing_is_named() {
        let link = Link::forward(RelationId(0));
        let rule = ScoredRule { rule: Rule::cyclic(link, &[link]), counts: Counts::exact(411, 338) };
        let right = "was right in 338 of 411 such cases (0.822)";
        assert_eq!(rules_in_words(1, &rule, 0, Some(0.81)), format!("one rule {right}"));
        assert_eq!(rules_in_words(3, &rule, 1, None), format!("the first of 3 rules {right}"));
        let together = format!("14 paths, 3 rules: the first {right}; all together, smoothed, say 99.9 %");
        assert_eq!(rules_in_words(3, &rule, 14, Some(0.99998)), together);
    }

    #[test]
    fn what_similar_cases_leave_out_is_said() {
        let case = |share: f64, side: CaseSide| {
            let (entity, link) = (EntityId(1), Link::forward(RelationId(0)));
            let fact = (entity, link, EntityId(2));
            let case = Case { entity, side, weight: 1.0, shared: Vec::new(), fact };
            SharePart { share, source: ShareSource::Case(case) }
        };
        let said = |model: ModelKind, of_cases: f64, side: CaseSide| {
            let rest = SharePart { share: 1.0 - of_cases, source: ShareSource::Rest(0) };
            let parts = vec![case(of_cases / 2.0, side), case(of_cases / 2.0, side), rest];
            inexact(model, &MemberShare { member: "embedding", share: 1.0, together: None, parts })
        };
        let [subject, answer] = [CaseSide::Subject, CaseSide::Answer];
        for model in [ModelKind::DistMult, ModelKind::ComplEx] {
            assert_eq!(said(model, 0.9, subject), None);
            let approximation = "these cases make 0.6 times its share, so they are an approximation";
            assert_eq!(said(model, 0.6, subject).unwrap(), approximation);
        }
        // A combination of subjects is never the whole of these, so how much it is stands there always.
        let rotate = said(ModelKind::RotatE, 0.6, subject).unwrap();
        assert_eq!(
            rotate,
            "RotatE measures distances, of which cases explain a part; these cases make 0.6 times its share"
        );
        assert!(said(ModelKind::RotatE, 1.0, subject).unwrap().ends_with("make 1.0 times its share"));
        let conve = said(ModelKind::ConvE, 1.0, subject).unwrap();
        assert_eq!(
            conve,
            "ConvE compares them through its network, not by themselves; these cases make 1.0 times its share"
        );
        assert_eq!(said(ModelKind::ConvE, 1.0, answer), None);
        assert!(said(ModelKind::ConvE, 1.4, answer).unwrap().contains("1.4 times"));
    }

    #[test]
    fn what_speaks_against_an_answer_does_not_read_as_support() {
        // 0, 1 and 2 use 9; 0 is linked to 9 by another relation, and 9 uses 1.
        let facts = [(0, 0, 9), (1, 0, 9), (2, 0, 9), (4, 0, 8), (5, 1, 9), (9, 0, 6)];
        let facts = facts.map(|(head, relation, tail)| Triple::new(head, relation, tail));
        let graph = Graph::new(10, 2, &facts);
        let said = |subject: u32, features: &[GraphFeature]| {
            let query = Query { subject: EntityId(subject), link: Link::forward(RelationId(0)) };
            features_against(&graph, query, EntityId(9), features)
        };
        assert_eq!(said(5, &[GraphFeature::Linked]), "against it: both are linked already");
        assert_eq!(said(3, &[GraphFeature::Linked]), "against it: nothing links both yet");
        assert_eq!(said(6, &[GraphFeature::LinkedBack]), "against it: the same relation leads back already");
        assert_eq!(
            said(3, &[GraphFeature::Frequency]),
            "against it: it is an answer for 3 of 5 others, 60 %"
        );
        assert_eq!(said(3, &[]), "");
    }

    #[test]
    fn what_is_only_popular_says_so() {
        // 0, 1 and 2 use 9, 3 uses 8, and 2 uses 7, too; 9 is linked to 4.
        let facts = [(0, 0, 9), (1, 0, 9), (2, 0, 9), (3, 0, 8), (2, 0, 7), (9, 1, 4)];
        let facts = facts.map(|(head, relation, tail)| Triple::new(head, relation, tail));
        let graph = Graph::new(10, 2, &facts);
        let said = |subject: u32, features: &[GraphFeature]| {
            let query = Query { subject: EntityId(subject), link: Link::forward(RelationId(0)) };
            features_in_words(&graph, query, EntityId(9), features).join("; ")
        };
        assert_eq!(said(5, &[GraphFeature::Frequency]), "it is an answer for 3 of 4 others, 75 %");
        // A fact of the graph is no evidence for itself.
        assert_eq!(
            said(0, &[GraphFeature::Taken, GraphFeature::Frequency]),
            "it is an answer for 2 of 3 others, 67 %"
        );
        assert_eq!(said(4, &[GraphFeature::Linked]), "both are linked by some relation");
        assert_eq!(said(5, &[]), "");
    }
}
