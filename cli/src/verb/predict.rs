//! `predict`: answers to a query, or to a file of them, each with its reason.

use crate::Outcome;
use crate::arguments::Common;
use crate::awaited::Awaited;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use crate::on_path::OnPath;
use crate::part::Share;
use anyhow::{bail, ensure};
use ruleguider::ask::sentence::fact_sentence;
use ruleguider::ask::{
    AnswersAmong, HeldOut, HeldOutAnswer, Model, Naming, OpenOptions, Prediction, QueryLines,
    RelationPrediction, because_in_words,
};
use ruleguider::graph::SplitShares;
use ruleguider::progress::Progress;
use ruleguider::shown::Shown;
use ruleguider::walk::WIDEST_BEAM;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `predict`.
#[derive(clap::Args)]
#[command(
    after_help = "Name entities by id or label; ~RELATION is the inverse of a relation and asks for heads. \
Each answer has a probability (the share of such answers that turn out to be held-out facts) and a score. \
Answers that are in the data but not in the graph, because they were held out for validation or test, are marked. \
With --file, there is one query per line, SUBJECT<TAB>RELATION (`-` for stdin), and one JSON object per line is printed; \
its key `line` is the query's line number, and `error` names what is not known. \
With `?` for RELATION and an OBJECT, the relations from SUBJECT to OBJECT are ranked, each with its plausibility by both \
ends and the probability of OBJECT. Exit code 1 if nothing is predicted.

Examples:
  ruleguider predict runs/demonstration Ilse_Hagenthal cousin_of
  ruleguider predict runs/demonstration \"Ilse Hagenthal (born 1926)\" '~sibling_of' --top 3 --json
  ruleguider predict runs/demonstration Ilse_Hagenthal '?' Vera_Hagenthal
  ruleguider predict runs/demonstration Ilse_Hagenthal cousin_of --without uncle_of --max-hops 3
  ruleguider predict runs/demonstration --file queries.tsv > answers.jsonl
  ruleguider predict runs/demonstration --file queries.tsv --shard 1/4 --out answers-1.shard
  ruleguider predict runs/demonstration --on other_family.tsv Anna_Feld cousin_of"
)]
pub struct Predict {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The subject of the query
    #[arg(value_name = "SUBJECT", required_unless_present = "file")]
    subject: Option<String>,
    /// The relation; ~RELATION asks for heads
    #[arg(value_name = "RELATION", required_unless_present = "file")]
    relation: Option<String>,
    /// With `?` as RELATION: which relations lead from SUBJECT to this entity
    #[arg(value_name = "OBJECT", conflicts_with = "file")]
    object: Option<String>,
    /// How many answers
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Answer with entities of this type, or of this file of entities, one a line
    #[arg(long, value_name = "TYPE|FILE")]
    among: Option<String>,
    /// Do not answer with entities of this type, or of this file
    #[arg(long, value_name = "TYPE|FILE")]
    not_among: Option<String>,
    /// A file of queries, one per line, subject, tab, relation; - for stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["subject", "relation"])]
    file: Option<PathBuf>,
    /// Answer part I of N of the file, or parts I to J (I-J/N), and write it to --out; `merge` combines all N parts
    #[arg(long, value_name = "I/N", requires_all = ["file", "out"])]
    shard: Option<Share>,
    /// The file for the part; its name ends in .shard, and {} in it is the number of the part
    #[arg(long, value_name = "FILE", requires = "shard")]
    out: Option<PathBuf>,
    /// The beam width of the walker: a narrower beam is faster and finds less [default: as in the run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=WIDEST_BEAM as i64))]
    beam: Option<u32>,
    /// Reasons as paths and clauses instead of sentences
    #[arg(long)]
    clauses: bool,
    #[command(flatten)]
    on_path: OnPath,
    #[command(flatten)]
    data: DataOfRun,
}

impl Predict {
    /// Answers and prints.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        // With many queries every thread answers its own; a single query uses all threads.
        let device = if self.file.is_some() { common.device_for_many()? } else { common.device()? };
        let beam = self.beam.map(|beam| beam as usize);
        let options = OpenOptions { device: Some(device), beam, ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        say_why_not(&model, common)?;
        match (&self.file, &self.subject, &self.relation) {
            (Some(file), _, _) => self.many(file, &model, common),
            (None, Some(subject), Some(relation)) if relation == "?" => {
                ensure!(
                    !self.on_path.is_given(),
                    "--through, --without and --max-hops limit the paths to answers, not relations; leave them out with `?`"
                );
                let Some(object) = &self.object else {
                    bail!("expected OBJECT after `?`: which relations lead from SUBJECT to it")
                };
                self.relations(&model, (subject, object), common)
            }
            (None, Some(_), Some(relation)) if self.object.is_some() => {
                bail!(
                    "an OBJECT is only given with `?` as RELATION, found `{relation}`; `explain` asks about one fact"
                )
            }
            (None, Some(subject), Some(relation)) => {
                let among = self.answers(&model)?;
                print_answers(&model, (subject, relation), (self.top as usize, self.clauses), &among, common)
            }
            _ => bail!("expected SUBJECT and RELATION, or --file"),
        }
    }

    /// Which entities may be answers, and by which paths.
    fn answers(&self, model: &Model) -> anyhow::Result<AnswersAmong> {
        let among = model.answers_among(self.among.as_deref(), self.not_among.as_deref())?;
        Ok(among.by_paths(self.on_path.limits(model)?))
    }

    fn relations(
        &self,
        model: &Model,
        (subject, object): (&str, &str),
        common: &Common,
    ) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        let quiet = ruleguider::progress::Quiet(&console as &dyn Progress);
        let index = model.index();
        let (subject, object) = (index.entity(subject)?, index.entity(object)?);
        let prediction = match model.relations_between(subject, object, self.top as usize, 1, &quiet) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            prediction => prediction?,
        };
        if common.json {
            console::print_json(&prediction)?;
        } else {
            let [subject, object] = [subject, object].map(|entity| model.naming().of(entity, model.names()));
            console::print(&BetweenTwo { prediction: &prediction, subject, object })?;
        }
        Ok(if prediction.answers.is_empty() { Outcome::Negative } else { Outcome::Done })
    }

    fn many(&self, file: &Path, model: &Model, common: &Common) -> anyhow::Result<Outcome> {
        let console = Console::with_interrupt(common);
        let among = self.answers(model)?;
        let workers = model.device().workers();
        if let (Some(share), Some(out)) = (self.shard, &self.out) {
            ensure!(file != Path::new("-"), "--shard: expected a file that every part can read, found stdin");
            let top = self.top as usize;
            let make =
                |shard, out: &Path| model.predict_shard(file, (top, &among), shard, workers, out, &console);
            return share.each(out, common, make);
        }
        let mut input = match file == Path::new("-") {
            true => QueryLines::of(file, Box::new(Awaited::stdin(&console)), true),
            false => QueryLines::open(file)?,
        };
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        console.begin("predicting", "queries", None);
        let (mut done, mut unknown, mut answered) = (0u64, 0u64, false);
        let mut interrupted;
        loop {
            let lines = input.next_block()?;
            // Ctrl-C may also have stopped the process that writes to the pipe.
            interrupted = console.interrupted();
            if lines.is_empty() || interrupted {
                break;
            }
            let block = match model.answer_lines(&lines, (self.top as usize, &among), workers, done, &console)
            {
                Err(error) if error.is_interrupted() => {
                    interrupted = true;
                    break;
                }
                block => block?,
            };
            unknown += block.unknown;
            answered |= block.answered;
            let written = block.lines.iter().try_for_each(|(_, text)| out.write_all(text.as_bytes()));
            // Flushed, so that readers get the answers at once and a later kill loses none.
            written.and_then(|()| out.flush()).map_err(console::stdout_fails)?;
            done += lines.len() as u64;
            console.advance(done, &"");
        }
        if done == 0 && !interrupted {
            console.note(&format_args!("{}: has no queries", file.display()));
        }
        console.end(&format_args!("{done} queries, {unknown} of them unreadable or with an unknown name"));
        Ok(match (interrupted, answered) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Done,
            (false, false) => Outcome::Negative,
        })
    }
}

/// The relations between two entities as text.
struct BetweenTwo<'a> {
    prediction: &'a RelationPrediction,
    subject: String,
    object: String,
}

impl fmt::Display for BetweenTwo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RelationPrediction { answers, known, .. } = self.prediction;
        write!(f, "{} —?→ {}", Shown(&self.subject), Shown(&self.object))?;
        for (place, answer) in answers.iter().enumerate() {
            let probable = answer.probability.in_words(answer.probability_rough);
            let probable = probable.map_or_else(String::new, |share| format!("  {share:>5}"));
            let plausible = answer.plausibility.map_or_else(String::new, |share| format!("  {share:5.3}"));
            let reason = if answer.words.is_empty() { "no member supports it" } else { &answer.words };
            write!(f, "\n{:3}  {}{plausible}{probable}", place + 1, Shown(&answer.label))?;
            write!(
                f,
                "  rank {} and {}{}\n     {}",
                answer.rank_tail,
                answer.rank_head,
                aside(answer.held_out),
                Shown(reason)
            )?;
        }
        if !known.is_empty() {
            write!(f, "\n  known already: {}", Shown(known.join(", ")))?;
        }
        Ok(())
    }
}

/// Answers one query of `subject` and `relation`, as users type them, and prints the answers.
pub fn print_answers(
    model: &Model,
    (subject, relation): (&str, &str),
    (top, clauses): (usize, bool),
    among: &AnswersAmong,
    common: &Common,
) -> anyhow::Result<Outcome> {
    let query = model.query(subject, relation)?;
    if let Some(other) = model.index().other_meaning(relation) {
        Console::new(common).note(&other);
    }
    let prediction = model.predict_among(query, top, among)?;
    if let Some(hint) = &prediction.hint {
        Console::new(common).note(hint);
    }
    if common.json {
        console::print_json(&prediction)?;
    } else {
        let (naming, connected) = (model.naming(), model.has_facts(query.subject));
        let subject = naming.of(query.subject, model.names());
        let question = fact_sentence(query, "?", model.names(), naming);
        let limited = !among.paths().is_none();
        let prediction = &prediction;
        console::print(&Answered { prediction, subject, question, naming, connected, limited, clauses })?;
    }
    Ok(if prediction.answers.is_empty() { Outcome::Negative } else { Outcome::Done })
}

/// Prints why answers have no probability, or only rough ones, if that is so.
pub fn say_why_not(model: &Model, common: &Common) -> anyhow::Result<()> {
    if let Some(why) = model.why_no_probability()? {
        Console::new(common).note(&why);
    }
    if let Some(why) = model.why_rough() {
        Console::new(common).note(&format_args!("probabilities are rough (~): {why}"));
    }
    Ok(())
}

/// The answers as text.
struct Answered<'a> {
    prediction: &'a Prediction,
    subject: String,
    /// The question as a sentence.
    question: String,
    naming: &'a Naming,
    /// Whether the graph has any fact about the subject.
    connected: bool,
    /// Whether only some paths may be reasons.
    limited: bool,
    clauses: bool,
}

impl fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { naming, limited, .. } = self;
        let Prediction { answers, known, known_total, held_out, held_out_total, .. } = self.prediction;
        let subject = Shown(&self.subject);
        write!(f, "{}", Shown(&self.question))?;
        match (answers.is_empty(), self.connected) {
            (true, true) if *limited => write!(
                f,
                "\n  nothing is predicted by a path that keeps to --through, --without and --max-hops"
            )?,
            (true, true) => write!(f, "\n  nothing is predicted: no learnt path or rule leads from here")?,
            (true, false) => write!(f, "\n  nothing is predicted: the graph has no fact about {subject}")?,
            (false, _) => {}
        }
        let named: Vec<String> =
            answers.iter().map(|answer| Shown(answer.name(naming)).to_string()).collect();
        let width = named.iter().map(|name| console::width(name)).max().unwrap_or(0).min(40);
        for (place, (answer, name)) in answers.iter().zip(named).enumerate() {
            let (place, score) = (place + 1, answer.score);
            let likely = answer.probability_in_words();
            let likely = likely.map_or_else(String::new, |share| format!("{share:>5}  "));
            let name = console::padded(&name, width);
            write!(f, "\n{place:3}  {name}  {likely}{score:8.4}{}", aside(answer.held_out))?;
            let reason = match self.clauses {
                true => answer.reason_in_clauses(naming),
                false => answer.reason_in_words(),
            };
            if !reason.is_empty() {
                write!(f, "\n     {}", Shown(reason))?;
            }
            // A single member gives the whole score.
            if answer.because.len() > 1 {
                write!(f, "\n     because: {}", Shown(because_in_words(&answer.because)))?;
            }
        }
        let unnamed = known_total - known.len();
        let known = counted(known);
        if !known.is_empty() {
            write!(f, "\n  known already: {}", first_of(&known, unnamed))?;
        }
        let shown = |answer: &&HeldOutAnswer| !answers.iter().any(|other| other.entity == answer.entity);
        let aside: Vec<String> = held_out
            .iter()
            .filter(shown)
            .map(|answer| {
                format!("{} ({})", naming.name(&answer.label, &answer.entity), answer.held_out.purpose())
            })
            .collect();
        if !aside.is_empty() {
            let unnamed = held_out_total - held_out.len();
            write!(f, "\n  in your data, held out: {}", first_of(&aside, unnamed))?;
        }
        Ok(())
    }
}

/// The first ten of `names`, and how many more there are, `unnamed` ones included.
fn first_of(names: &[String], unnamed: usize) -> String {
    let first = Shown(names[..names.len().min(10)].join(", ")).to_string();
    match names.len().saturating_sub(10) + unnamed {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The note on an answer that is not new: it is in the data, held out.
pub fn aside(held_out: Option<HeldOut>) -> String {
    held_out.map_or_else(String::new, |split| format!("   [in your data, held out for {}]", split.purpose()))
}

/// Distinct labels in their order, with a count if there are several.
fn counted(labels: &[String]) -> Vec<String> {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for label in labels {
        match seen.iter_mut().find(|(other, _)| other == label) {
            Some((_, count)) => *count += 1,
            None => seen.push((label, 1)),
        }
    }
    let said = |(label, count): (&str, usize)| match count {
        1 => label.to_owned(),
        _ => format!("{label} (×{count})"),
    };
    seen.into_iter().map(said).collect()
}
