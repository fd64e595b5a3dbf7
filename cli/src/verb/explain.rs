//! `explain`: why a fact is predicted, or why not.

use super::predict::{aside, say_why_not};
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{DataOfRun, List};
use crate::on_path::OnPath;
use anyhow::bail;
use ruleguider::ask::answer::path_in_words;
use ruleguider::ask::{
    Answer, Contribution, EmbeddingOpinion, Explanation, GroundedRule, MAX_PATHS, Naming, OpenOptions,
    ReasonRow, SimilarCase, WithoutRule, signed,
};
use ruleguider::graph::{SplitShares, header_line, table_line};
use ruleguider::progress::Silent;
use ruleguider::reason::ScoreWithout;
use ruleguider::shown::Shown;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The longest bar of a member's share, and the most shared facts that a case names.
const BAR: f64 = 20.0;
const BAR_WIDTH: usize = 20;
const SHARED: usize = 3;

/// Arguments of `explain`.
#[derive(clap::Args)]
#[command(
    after_help = "Name entities by id or label; ~RELATION is the inverse of a relation. With --file, the facts of a list are explained, a row a reason, \
those of the graph with themselves taken out. Exit code 1 if the fact is neither \
known nor predicted.

Examples:
  ruleguider explain runs/demonstration Ilse_Hagenthal cousin_of Vera_Hagenthal
  ruleguider explain runs/demonstration Ilse_Hagenthal cousin_of Vera_Hagenthal --without sibling_of
  ruleguider explain runs/demonstration --file pairs.tsv --out reasons.tsv
  ruleguider explain runs/demonstration \"Ilse Hagenthal (born 1926)\" '~sibling_of' Julia_Hagenthal --json"
)]
pub struct Explain {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The subject of the query
    #[arg(value_name = "SUBJECT", required_unless_present = "file")]
    subject: Option<String>,
    /// The relation
    #[arg(value_name = "RELATION", required_unless_present = "file")]
    relation: Option<String>,
    /// The answer to explain
    #[arg(value_name = "OBJECT", required_unless_present = "file")]
    object: Option<String>,
    /// A list of facts: subject, relation, object in each row; TSV, CSV, JSON lines or Parquet by its extension
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "relation", "object", "rules", "through", "without", "max_hops"])]
    file: Option<PathBuf>,
    /// The file to write the reasons to: .tsv, .csv, .jsonl or .parquet [default: stdout, as TSV, or JSON lines with --json]
    #[arg(long, value_name = "FILE", requires = "file")]
    out: Option<PathBuf>,
    /// The most reasons for each fact of the list
    #[arg(long, value_name = "N", default_value_t = MAX_PATHS as u32, requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    reasons: u32,
    /// Show this many of the rules that predict it, and the rank and score without the first
    #[arg(long, value_name = "N")]
    rules: Option<usize>,
    /// Reasons as paths and clauses instead of sentences
    #[arg(long)]
    clauses: bool,
    #[command(flatten)]
    on_path: OnPath,
    #[command(flatten)]
    data: DataOfRun,
}

impl Explain {
    /// Explains the facts of a list: a row a reason.
    fn list(&self, file: &Path, common: &Common) -> anyhow::Result<Outcome> {
        let device = common.device_for_many()?;
        let workers = device.workers();
        let options = OpenOptions { device: Some(device), ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        say_why_not(&model, common)?;
        let (console, most) = (Console::with_interrupt(common), self.reasons as usize);
        let list = List::of(file, common)?;
        let file = list.path();
        let explained = match &self.out {
            Some(out) => model.explain_file(file, most, workers, out, &console),
            None => {
                let mut out = io::BufWriter::new(io::stdout().lock());
                // Printed with the first rows: if the list cannot be read, nothing is.
                let mut header = (!common.json).then(|| header_line(&ReasonRow::COLUMNS));
                let mut failed = None;
                let take = |rows: &[ReasonRow]| {
                    let begun = header.take().map_or(Ok(()), |header| writeln!(out, "{header}"));
                    let written = rows.iter().try_for_each(|row| match common.json {
                        true => serde_json::to_string(row)
                            .map_err(io::Error::from)
                            .and_then(|line| writeln!(out, "{line}")),
                        false => writeln!(out, "{}", table_line(&row.clone().cells())),
                    });
                    begun.and(written).and_then(|()| out.flush()).map_err(|error| {
                        let message = io::Error::new(error.kind(), "stdout");
                        failed = Some(error);
                        message
                    })
                };
                let explained = model.explain_rows(file, most, workers, &console, take);
                if let Some(error) = failed {
                    return Err(console::stdout_fails(error));
                }
                explained
            }
        };
        let explained = match explained {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            explained => explained?,
        };
        if explained.out.is_some() {
            if common.json { console::print_json(&explained) } else { console::print(&explained) }?;
        }
        Ok(if explained.reasons == 0 { Outcome::Negative } else { Outcome::Done })
    }

    /// Explains and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        if let Some(file) = &self.file {
            return self.list(file, common);
        }
        let (Some(subject), Some(relation), Some(object)) = (&self.subject, &self.relation, &self.object)
        else {
            bail!("expected SUBJECT, RELATION and OBJECT, or --file");
        };
        let options = OpenOptions { device: Some(common.device()?), ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        say_why_not(&model, common)?;
        let query = model.query(subject, relation)?;
        if let Some(other) = model.index().other_meaning(relation) {
            Console::new(common).note(&other);
        }
        let object = model.index().entity(object)?;
        let (rules, limits) = (self.rules.unwrap_or(MAX_PATHS), self.on_path.limits(&model)?);
        let explanation = model.explain_within(query, object, rules, &limits, &Silent)?;
        let has_reason = !explanation.answers.is_empty() || !explanation.rules.is_empty();
        if self.on_path.is_given() && explanation.rank.is_some() && !has_reason {
            Console::new(common).note(&"no reason has a path within --through, --without and --max-hops");
        }
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
                clauses: self.clauses,
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
    /// Whether rules and paths are shown as clauses.
    clauses: bool,
    subject: String,
    relation: &'a str,
    object: String,
    naming: &'a Naming,
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { explanation, asked, clauses, subject, relation, object, naming } = self;
        let reason_of = |answer: &Answer| match clauses {
            true => answer.reason_in_clauses(naming),
            false => answer.reason_in_words(),
        };
        let Explanation { inverse, known, rank, instead, answers, rules, rules_total, embedding, .. } =
            explanation;
        let (head, tail) = if *inverse { (object, subject) } else { (subject, object) };
        write!(f, "{}: ", Shown(format_args!("{head} —{relation}→ {tail}")))?;
        match (known, rank, *rules_total == 0) {
            (true, _, _) => write!(f, "a fact of the graph")?,
            (false, Some(rank), _) => {
                write!(f, "predicted at rank {rank}")?;
                if let Some(share) = answers.first().and_then(Answer::probability_in_words) {
                    write!(f, ", probability {share}")?;
                }
            }
            (false, None, true) => write!(f, "not predicted: no learnt path or rule leads there")?,
            (false, None, false) => write!(f, "not predicted: there are too many better answers")?,
        }
        write!(f, "{}", aside(explanation.held_out))?;
        if explanation.known_false {
            let source = explanation.known_false_source.as_ref();
            let source = source.map_or_else(String::new, |source| format!(" [{}]", Shown(source)));
            write!(f, "; known to be false{source}")?;
        }
        write_because(f, explanation, naming)?;
        // A path that a rule below shows is not printed twice, and what no member with weight supports has none.
        let new = |answer: &&Answer| !rules.iter().any(|rule| rule.path == answer.reason.path);
        let shown = |answer: &&Answer| !answer.reason_in_words().is_empty();
        for answer in answers.iter().filter(new).filter(shown) {
            write!(f, "\n  {:8.4}\n     {}", answer.score, Shown(reason_of(answer)))?;
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
        for GroundedRule { rule, from, from_id, path, path_sentence, propagator, .. } in rules {
            write!(
                f,
                "\n  {:.3}  ({} of {})  {}",
                rule.confidence,
                rule.correct,
                rule.predicted,
                Shown(if *clauses { &rule.label } else { &rule.sentence })
            )?;
            if !path.is_empty() {
                let words = match clauses {
                    true => path_in_words(&naming.name(from, from_id), path, naming),
                    false => path_sentence.clone(),
                };
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
            let (name, reason) = (Shown(best.name(naming)), Shown(reason_of(best)));
            write!(f, "\nThe best answer is {name} ({:.4}){}", best.score, aside(best.held_out))?;
            if !reason_of(best).is_empty() {
                write!(f, "\n     {reason}")?;
            }
        }
        Ok(())
    }
}

/// What the score came from: a bar for each member, and its cases.
fn write_because(
    f: &mut fmt::Formatter<'_>,
    Explanation { typical, because, answers, .. }: &Explanation,
    naming: &Naming,
) -> fmt::Result {
    let (Some(typical), Some(score)) = (typical, answers.first().map(|answer| answer.score)) else {
        return Ok(());
    };
    write!(f, "\nIts score {score:.2} came from (a typical candidate has {typical:.2}):")?;
    let longest = because.iter().map(|one| one.share.abs()).fold(f64::MIN_POSITIVE, f64::max);
    let width = because.iter().map(|one| one.member.chars().count()).max().unwrap_or(0);
    for Contribution { member, share, words, evidence } in because {
        let bar = "#".repeat((BAR * share.abs() / longest).round() as usize);
        let line = format!("{:>7}  {member:width$}  {bar:BAR_WIDTH$}  {words}", signed(*share));
        write!(f, "\n{}", Shown(line.trim_end()))?;
        for (share, case) in evidence.iter().filter_map(|part| Some((part.share, part.case.as_ref()?))) {
            let SimilarCase { shared_total, shared, .. } = case;
            let mut facts = shared.iter().map(|step| {
                let link = if step.inverse { "~" } else { "" };
                format!("{link}{} {}", step.relation_shown(), naming.name(&step.label, &step.entity))
            });
            let facts: Vec<String> = facts.by_ref().take(SHARED).collect();
            let more = shared_total - facts.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let both =
                if facts.is_empty() { "no facts in common".to_owned() } else { facts.join(", ") + &more };
            write!(f, "\n           {:>7}  {}: {}", signed(share), Shown(case.name(naming)), Shown(both))?;
        }
        let rest = evidence.iter().find(|part| part.rest == Some(0)).map(|part| part.share);
        if let Some(rest) = rest.filter(|_| evidence.len() > 1) {
            write!(f, "\n           {:>7}  the rest", signed(rest))?;
        }
    }
    Ok(())
}

/// The propagator's score with and without the path above.
fn write_without(f: &mut fmt::Formatter<'_>, propagator: Option<ScoreWithout>) -> fmt::Result {
    let Some(ScoreWithout { score, without }) = propagator else { return Ok(()) };
    write!(f, "\n           the propagator's score: {score:.2}, without this path {without:.2}")
}

/// The answer without a rule, in words.
fn left(without: &WithoutRule) -> String {
    match *without {
        WithoutRule { score: Some(score), rank: Some(rank), probability, probability_rough } => {
            let probable = probability
                .in_words(probability_rough)
                .map_or_else(String::new, |share| format!(", probability {share}"));
            format!("rank {rank}, score {score:.4}{probable}")
        }
        _ => "not predicted".to_owned(),
    }
}
