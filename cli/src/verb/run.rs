//! `run`: all stages, then the ranking, then a few explained answers.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::{self, Form, Place, Reading};
use anyhow::bail;
#[cfg(feature = "live")]
use ruleguider::ask::LearntEdits;
use ruleguider::ask::{
    ExampleAnswer, HeldOut, INSTANT, Learning, LearntEverything, RunReport, UpdateReport, with_weights,
};
use ruleguider::eval::Figures;
use ruleguider::eval::calibration::Reliability;
use ruleguider::graph::{Dataset, SplitShares, read};
use ruleguider::run::{Added, RuleChange, Source, StageReport, member};
use ruleguider::shown::Shown;
use ruleguider::train::LastMinute;
use ruleguider::{Learn, Model};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Minutes, as a user gives them.
pub fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|&minutes: &f64| minutes > 0.0 && minutes.is_finite());
    minutes.ok_or_else(|| "expected a number of minutes above 0".to_owned())
}

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(
    after_help = "Without DATA, the built-in demonstration graph is used; this takes about 12 s on two cores. If interrupted or \
killed, run the same command again to resume.

Examples:
  ruleguider run
  ruleguider run my_triples.tsv --minutes 5
  ruleguider run my_triples.tsv --instant
  ruleguider run dated.tsv --split-time 2023-01-01
  ruleguider run my_triples.tsv --minutes 5 --learn-all
  ruleguider run --update runs/my_triples my_triples.tsv
  ruleguider run --update runs/my_triples --live live.db
  ruleguider run data/wn18rr --set rules.seconds=100 --out runs/wn18rr
  ruleguider run data/wn18rr --config my.toml --json | jq .mrr"
)]
pub struct Run {
    /// A folder with train, valid, test (and optionally graph, entity_labels.tsv, relation_labels.tsv), or one file of
    /// triples; - for stdin
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,
    /// A TOML settings file, or the name of a built-in configuration
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<String>,
    /// The run directory [default: runs/ and the name of the data]
    #[arg(long, value_name = "RUN")]
    out: Option<PathBuf>,
    /// A setting, such as rules.threshold=0.05; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The time for learning and ranking, in minutes, if no --config is given [default: 10]
    #[arg(long, value_name = "M", conflicts_with = "config", requires = "data", value_parser = minutes)]
    minutes: Option<f64>,
    /// Answer by the universal propagator: nothing is trained, the run is there as soon as it is ranked and calibrated
    #[arg(long, conflicts_with_all = ["config", "minutes", "update"])]
    instant: bool,
    #[command(flatten)]
    weights: data::Weights,
    /// After the evaluation, learn once more from all facts, including those held out, for the best answers in use; takes
    /// about as long again
    #[arg(long)]
    learn_all: bool,
    /// Start from this finished run; DATA is the new version of its data. The old run is not changed [default --out: its
    /// name and -updated]
    #[arg(long, value_name = "RUN", conflicts_with = "config")]
    update: Option<PathBuf>,
    /// Learn also from the facts and verdicts of `serve --live`: accepted facts are learnt, rejected ones are negative
    /// examples; without DATA, from those of the updated run
    #[cfg(feature = "live")]
    #[arg(long, value_name = "FILE", requires = "update")]
    live: Option<PathBuf>,
    /// Write event files for TensorBoard into RUN/tensorboard
    #[arg(long)]
    tensorboard: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Run {
    /// Runs, prints the figures and the answers.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let Form { header, format, columns, named_graph, conflicts, query, .. } = &self.reading.form;
        let given = self.reading.divides() || header.is_some() || format.kind.is_some();
        let given =
            given || columns.is_some() || named_graph.is_some() || conflicts.is_some() || query.is_some();
        if self.data.is_none() && given {
            bail!(
                "--split, --split-time, --header, --format, --columns, --graph, --query and --conflicts need DATA"
            );
        }
        if self.update.is_some() && self.data.is_none() && !self.is_live() {
            bail!("--update needs DATA, the new version of the data, or --live FILE");
        }
        let (console, began) = (Console::with_interrupt(common), Instant::now());
        let place = self.data.as_ref().map(|data| Place::of(data, &self.reading.form, common)).transpose()?;
        let learning = self.learn(place.as_ref(), common)?.prepare()?;
        let console = console.within(began, learning.plan().map(|plan| plan.resources.minutes));
        if let Some(path) = &self.data {
            data::note_odd(path, &learning.dataset().findings, common);
            data::note_understood(learning.dataset(), common);
        }
        console.note(&Beginning(&learning));
        if let Some(plan) = learning.plan() {
            console.note(plan);
        }
        if let Some(update) = learning.update() {
            console.note(&Changed(update));
        }
        let out = learning.spec().out.clone();
        let model = match learning.run(&console) {
            Ok(model) => model,
            Err(error) if error.is_interrupted() => {
                console.note(&Interrupted { out: &out });
                return Ok(Outcome::Interrupted);
            }
            Err(error) => return Err(error.into()),
        };
        let report = model.results()?;
        if common.json {
            console::print_json(report)?;
        } else {
            console::print(&Ending { report, out: model.run_path() })?;
        }
        Ok(Outcome::Done)
    }

    /// Whether facts and verdicts are learnt from.
    fn is_live(&self) -> bool {
        #[cfg(feature = "live")]
        return self.live.is_some();
        #[cfg(not(feature = "live"))]
        false
    }

    /// What came through a pipe is read here: a run has no file to remember.
    fn learn_piped(&self, place: &Place, common: &Common) -> anyhow::Result<Learn> {
        let mut options = self.reading.options(common);
        if self.update.is_some() && options.shares.since.is_none() {
            // Facts of the earlier run stay in their splits, so only new ones are divided.
            options.shares = SplitShares::WHOLE;
        }
        let dataset = read(place.path(), &options).map_err(|error| place.named(error))?;
        Ok(Learn::from_dataset(Source::Memory { name: "stdin".to_owned() }, dataset))
    }

    fn learn(&self, place: Option<&Place>, common: &Common) -> anyhow::Result<Learn> {
        let mut learn = match place {
            None => Learn::demonstration(),
            Some(Place::Named(path)) => Learn::new(path),
            Some(spooled) => self.learn_piped(spooled, common)?,
        };
        learn = self.reading.form.format.kind.into_iter().fold(learn, Learn::format);
        learn = learn.literals(self.reading.form.literals.unwrap_or_default());
        learn = self.reading.form.columns.iter().cloned().fold(learn, Learn::columns);
        learn = self.reading.form.named_graph.iter().fold(learn, Learn::named_graph);
        learn = learn.conflicts(self.reading.form.conflicts.unwrap_or_default());
        learn = learn
            .seed(common.seed)
            .device(common.device()?)
            .tensorboard(self.tensorboard)
            .learn_all(self.learn_all);
        learn = learn.split(self.reading.shares()).fill_splits(self.instant);
        learn = self.update.iter().fold(learn, Learn::update);
        #[cfg(feature = "live")]
        if let Some(file) = &self.live {
            // With DATA, the updated run's facts are not used, nor what it has learnt from edits.
            let learnt = match (&self.update, &self.data) {
                (Some(run), None) => LearntEdits::read(run)?,
                _ => LearntEdits::default(),
            };
            learn = learn.edits(super::live::state(file)?.edits_since(&learnt));
        }
        if self.instant {
            learn = INSTANT.into_iter().fold(learn, Learn::set);
        }
        learn = self.weights.weights.as_deref().map(with_weights).into_iter().fold(learn, Learn::set);
        learn = self.set.iter().fold(learn, Learn::set);
        learn = self.config.iter().fold(learn, Learn::config);
        learn = self.out.iter().fold(learn, Learn::out);
        learn = self.minutes.iter().fold(learn, |learn, &minutes| learn.minutes(minutes));
        Ok(self.reading.form.header.iter().fold(learn, |learn, &header| learn.header(header)))
    }
}

/// What is said to somebody who interrupts.
struct Interrupted<'a> {
    out: &'a Path,
}

impl fmt::Display for Interrupted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; run the same command again to resume")?;
        match Model::open(self.out) {
            Ok(_) => write!(f, ". Meanwhile {} answers by what it has learnt so far", self.out.display()),
            Err(_) => Ok(()),
        }
    }
}

/// The text that is printed before learning begins.
struct Beginning<'a>(&'a Learning);

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (spec, Dataset { names, known, test, .. }) = (self.0.spec(), self.0.dataset());
        write!(
            f,
            "{}: {} entities, {} relations, {} facts; {} training queries, {} valid, {} test; into {}",
            spec.source.name(),
            names.entities.len(),
            names.relations.len(),
            known.facts.len(),
            known.queries.len(),
            known.valid.len(),
            test.len(),
            spec.out.display()
        )
    }
}

/// How the data of an update differs.
struct Changed<'a>(&'a UpdateReport);

impl fmt::Display for Changed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UpdateReport { from, data, learnt_before, .. } = self.0;
        let changed = |what: &str, added: usize, removed: usize| format!("{what} +{added} -{removed}");
        let changes = [
            changed("facts", data.facts_added, data.facts_removed),
            changed("entities", data.entities_added, data.entities_removed),
            changed("relations", data.relations_added, data.relations_removed),
        ];
        write!(f, "update of {from}: {}", changes.join(", "))?;
        match learnt_before {
            0 => Ok(()),
            count => write!(f, "; {count} valid and test facts left out, because {from} learnt them"),
        }
    }
}

/// What has changed, including rules and figures.
struct Updated<'a> {
    update: &'a UpdateReport,
    after: &'a Figures,
}

impl fmt::Display for Updated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UpdateReport { rules, figures_before, .. } = self.update;
        writeln!(f, "\n{}", Changed(self.update))?;
        writeln!(f, "Rules: {} kept, {} new, {} removed", rules.kept, rules.new, rules.gone)?;
        for RuleChange { rule, before, after } in rules.moved.iter().take(5) {
            writeln!(f, "  {before:.2} → {after:.2}  {}", Shown(rule))?;
        }
        let line = |figures: &Figures| {
            let Figures { queries, hits_at_1, hits_at_10, mrr, .. } = figures;
            let [hits_at_1, hits_at_10, mrr] = [hits_at_1, hits_at_10, mrr].map(|figure| 100.0 * figure);
            format!("MRR {mrr:.1}, Hits@1 {hits_at_1:.1}, Hits@10 {hits_at_10:.1} of {queries} queries")
        };
        if let Some(before) = figures_before {
            writeln!(f, "Figures before: {}, on the old test split", line(before))?;
        }
        writeln!(f, "Figures now:    {}", line(self.after))
    }
}

/// What each member brought, and what more time would do.
struct Tried<'a>(&'a RunReport);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport { stages, still_improving, .. } = self.0;
        let adds = stages.get(member::BLENDING).map(|stage| &stage.figures.adds);
        if let Some(adds) = adds.filter(|adds| !adds.is_empty()) {
            let one = |(name, added): (&String, &Added)| {
                let left_out = if added.kept { "" } else { ", left out" };
                let error = added.error.unwrap_or(0.0);
                format!("{name} {:+.1} ± {:.1}{left_out}", 100.0 * added.mrr, 100.0 * error)
            };
            let adds: Vec<String> = adds.iter().map(one).collect();
            writeln!(f, "MRR that each member adds to the others on validation: {}", adds.join("; "))?;
        }
        let last = |(name, stage): (&String, &StageReport)| {
            let LastMinute { seconds, mrr } = stage.figures.last_minute?;
            Some(format!("{name} {:+.1} MRR in {seconds:.0} s", 100.0 * mrr))
        };
        let last: Vec<String> = stages.iter().filter_map(last).collect();
        if !last.is_empty() {
            writeln!(f, "What the end of each training brought, on validation: {}", last.join("; "))?;
        }
        if !still_improving.is_empty() {
            writeln!(
                f,
                "More minutes would help: {} still improved when it ended",
                still_improving.join(", ")
            )?;
        }
        Ok(())
    }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:+,@%".contains(letter);
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", Shown(name).to_string().replace('\'', "'\\''")),
    }
}

/// The figures and the answers as text.
struct Ending<'a> {
    report: &'a RunReport,
    out: &'a Path,
}

impl fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport { report, stages, examples, seed, version, .. } = self.report;
        for (name, stage) in member::names().filter_map(|name| stages.get_key_value(name)) {
            let memory = stage.peak_memory_mb.map_or(String::new(), |mb| format!(", {mb:.0} MB"));
            let before = if stage.skipped { ", already done" } else { "" };
            let cut = stage.cut.as_ref().map_or(String::new(), |why| format!(", {why}"));
            writeln!(f, "{name}: {:.1} s{memory}{cut}{before}", stage.seconds)?;
        }
        write!(f, "{}", Tried(self.report))?;
        writeln!(f, "\nTest split, filtered, seed {seed}, version {version}:\n{report}")?;
        if let Some(Reliability { ece, error_above, top, queries, .. }) = &self.report.calibration {
            writeln!(
                f,
                "Probabilities: expected calibration error {ece:.4} over the {top} best answers of {queries} queries, \
                 {error_above:.4} above 0.2\n"
            )?;
        }
        if let Some(faithfulness) = &self.report.faithfulness {
            writeln!(f, "{faithfulness}\n")?;
        }
        if !examples.is_empty() {
            writeln!(f, "Answers to test queries, with their reasons:")?;
        }
        for example in examples {
            let verdict = match example.split() {
                Some(HeldOut::Test) => "true".to_owned(),
                Some(split) => format!("true, held out for {}", split.purpose()),
                None => "not in the data".to_owned(),
            };
            writeln!(f, "  {}  [{verdict}]", Shown(example.claim()))?;
            let reason = example.answer.reason_in_words();
            if !reason.is_empty() {
                writeln!(f, "     {}", Shown(reason))?;
            }
        }
        if let Some(update) = &self.report.update {
            write!(f, "{}", Updated { update, after: &self.report.report.figures })?;
        }
        if let Some(LearntEverything { facts, held_out_before, .. }) = &self.report.learnt_everything {
            write!(f, "\nAnswers come from a second model, learnt from all {facts} facts, ")?;
            writeln!(f, "including {held_out_before} that were held out.")?;
            writeln!(
                f,
                "The figures above are those of the first model, which did not learn the held-out facts."
            )?;
        }
        let out = self.out.display();
        match examples.first() {
            Some(ExampleAnswer { subject, relation, .. }) => {
                let [subject, relation] = [subject, relation].map(|name| quoted(name));
                write!(f, "\nAsk it:    ruleguider predict {out} {subject} {relation}")?;
            }
            None => write!(f, "\nAsk it:    ruleguider predict {out} SUBJECT RELATION")?,
        }
        write!(f, "\nBrowse it: ruleguider serve {out}")
    }
}
