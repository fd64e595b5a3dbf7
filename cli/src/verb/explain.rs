//! `explain`: why a fact is predicted, or why not.

use super::predict::{aside, say_why_not};
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use ruleguider::ask::answer::path_in_words;
use ruleguider::ask::{EmbeddingOpinion, Explanation, GroundedRule, Naming, OpenOptions, WAYS, WithoutRule};
use ruleguider::graph::SplitShares;
use ruleguider::progress::Silent;
use ruleguider::reason::ScoreWithout;
use ruleguider::shown::Shown;
use std::fmt;
use std::path::PathBuf;

/// Arguments of `explain`.
#[derive(clap::Args)]
#[command(
    after_help = "Name entities by id or label; ~RELATION is the inverse of a relation. Exit code 1 if the fact is neither \
known nor predicted.

Examples:
  ruleguider explain runs/demonstration Ilse_Hagenthal cousin_of Vera_Hagenthal
  ruleguider explain runs/demonstration \"Ilse Hagenthal (born 1926)\" '~sibling_of' Julia_Hagenthal --json"
)]
pub struct Explain {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The subject of the query
    #[arg(value_name = "SUBJECT")]
    subject: String,
    /// The relation
    #[arg(value_name = "RELATION")]
    relation: String,
    /// The answer to explain
    #[arg(value_name = "OBJECT")]
    object: String,
    /// Show this many of the rules that predict it, and the rank and score without the first
    #[arg(long, value_name = "N")]
    rules: Option<usize>,
    #[command(flatten)]
    data: DataOfRun,
}

impl Explain {
    /// Explains and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let options = OpenOptions { device: Some(common.device()?), ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        say_why_not(&model, common)?;
        let query = model.query(&self.subject, &self.relation)?;
        if let Some(other) = model.index().other_meaning(&self.relation) {
            Console::new(common).note(&other);
        }
        let object = model.index().entity(&self.object)?;
        let explanation = model.explain_query(query, object, self.rules.unwrap_or(WAYS), &Silent)?;
        if common.json {
            console::print_json(&explanation)?;
        } else {
            let (names, naming) = (model.names(), model.naming());
            let (subject, object) = (naming.of(query.subject, names), naming.of(object, names));
            let relation = query.link.relation().map_or("", |relation| names.relation_label(relation));
            let asked = self.rules.is_some();
            console::print(&Explained {
                explanation: &explanation,
                asked,
                subject,
                relation,
                object,
                naming,
            })?;
        }
        let found = explanation.known || explanation.rank.is_some();
        Ok(if found { Outcome::Done } else { Outcome::Negative })
    }
}

/// The explanation as text.
struct Explained<'a> {
    explanation: &'a Explanation,
    /// Whether the user asked for the rules.
    asked: bool,
    subject: String,
    relation: &'a str,
    object: String,
    naming: &'a Naming,
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { explanation, asked, subject, relation, object, naming } = self;
        let Explanation { inverse, known, rank, instead, answers, rules, rules_total, embedding, .. } =
            explanation;
        let (head, tail) = if *inverse { (object, subject) } else { (subject, object) };
        write!(f, "{}: ", Shown(format_args!("{head} —{relation}→ {tail}")))?;
        match (known, rank, *rules_total == 0) {
            (true, _, _) => write!(f, "a fact of the graph")?,
            (false, Some(rank), _) => {
                write!(f, "predicted at rank {rank}")?;
                if let Some(share) = answers.first().and_then(|answer| answer.probability.0) {
                    write!(f, ", probability {share:.3}")?;
                }
            }
            (false, None, true) => write!(f, "not predicted: no learnt path or rule leads there")?,
            (false, None, false) => write!(f, "not predicted: there are too many better answers")?,
        }
        write!(f, "{}", aside(explanation.held_out))?;
        // A path that a rule below shows is not printed twice.
        for answer in
            answers.iter().filter(|answer| !rules.iter().any(|rule| rule.path == answer.reason.path))
        {
            write!(f, "\n  {:8.4}  {}", answer.score, Shown(answer.reason_in_words(naming)))?;
            write_without(f, answer.reason.propagator)?;
            for step in &answer.reason.path {
                if let (Some(relation), Some(entity)) = (step.relation_score, step.entity_score) {
                    let link = if step.inverse { "~" } else { "" }.to_owned() + step.relation_shown();
                    let link = Shown(link);
                    write!(f, "\n           {link}: relation agent {:.1} %, ", 100.0 * relation.exp())?;
                    let name = Shown(naming.name(&step.label, &step.entity));
                    write!(f, "{name}: entity agent {:.1} %", 100.0 * entity.exp())?;
                }
            }
        }
        if !rules.is_empty() {
            write!(f, "\nRules that predict it:")?;
        }
        for GroundedRule { rule, from, from_id, path, propagator, .. } in rules {
            write!(
                f,
                "\n  {:.3}  ({} of {})  {}",
                rule.confidence,
                rule.correct,
                rule.predicted,
                Shown(&rule.label)
            )?;
            if !path.is_empty() {
                let words = path_in_words(&naming.name(from, from_id), path, naming);
                write!(f, "\n         {}", Shown(words))?;
            }
            write_without(f, *propagator)?;
        }
        if *asked && rules.len() < *rules_total {
            write!(f, "\n  {} more (--rules {rules_total} shows them all)", rules_total - rules.len())?;
        }
        if let Some(without) = rules.first().filter(|_| *asked).and_then(|rule| rule.without) {
            write!(f, "\nWithout the first of them: {}", left(&without))?;
        }
        if let Some(EmbeddingOpinion { plausibility, rank }) = embedding {
            let plausibility = match *plausibility {
                tiny if tiny > 0.0 && tiny < 0.001 => format!("{tiny:.0e}"),
                plausibility => format!("{plausibility:.3}"),
            };
            write!(f, "\nThe embedding model: plausibility {plausibility}, rank {rank}")?;
        }
        if let Some(best) = instead {
            let (name, reason) = (Shown(best.name(naming)), Shown(best.reason_in_words(naming)));
            write!(f, "\nThe best answer is {name} ({:.4}): {reason}{}", best.score, aside(best.held_out))?;
        }
        Ok(())
    }
}

/// The propagator's score with and without the path above.
fn write_without(f: &mut fmt::Formatter<'_>, propagator: Option<ScoreWithout>) -> fmt::Result {
    let Some(ScoreWithout { score, without }) = propagator else { return Ok(()) };
    write!(f, "\n           the propagator's score: {score:.2}, without this path {without:.2}")
}

/// The answer without a rule, in words.
fn left(without: &WithoutRule) -> String {
    match *without {
        WithoutRule { score: Some(score), rank: Some(rank), probability } => {
            let probable =
                probability.0.map_or_else(String::new, |share| format!(", probability {share:.3}"));
            format!("rank {rank}, score {score:.4}{probable}")
        }
        _ => "not predicted".to_owned(),
    }
}
