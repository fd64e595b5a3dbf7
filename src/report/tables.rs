//! `results/tables.md`: all results as Markdown, ours beside the published.

use super::published::{PublishedRow, published};
use super::reproduce::RowResult;
use crate::eval::Figures;
use crate::run::member::{self, CALIBRATION};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The order of the rows, as in the paper; systems that are not named here follow by name.
const ORDER: [&str; 24] = [
    "minerva",
    "minerva-published",
    "multihop-conve",
    "multihop-complex",
    "multihop-complex-published",
    "rules-cyclic",
    "ruleguider-conve",
    "ruleguider-conve-rescored",
    "ruleguider-complex",
    "ruleguider-complex-rescored",
    "ruleguider-propagator",
    "distmult",
    "complex",
    "conve",
    "conve-published",
    "rotate",
    "ruleguider-complex-freeze",
    "ruleguider-complex-no",
    "ruleguider-complex-single",
    "ruleguider-complex-threshold-0",
    "ruleguider-complex-threshold-005",
    "ruleguider-complex-threshold-010",
    "propagator",
    "blend",
];

/// All seeds of one row.
struct Row<'a> {
    dataset: &'a str,
    system: &'a str,
    split: &'a str,
    seeds: Vec<&'a RowResult>,
}

/// The tables in Markdown: for each data set our figures beside the published ones, then other results.
pub fn tables(results: &[RowResult]) -> String {
    let rows = rows(results);
    let mut text = String::from("# Results\n\nMade by `ruleguider reproduce`; per cent. ");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "Ours: filtered, realistic ties, the mean over seeds (± their standard deviation). Published: {}; {}.",
        published().protocol.ranking,
        published().protocol.differs
    );
    for of_dataset in rows.chunk_by(|a, b| (a.dataset, a.split) == (b.dataset, b.split)) {
        let _ =
            writeln!(text, "\n## {}, {} split, tail queries\n", of_dataset[0].dataset, of_dataset[0].split);
        text.push_str(
            "| system | hits@1 | hits@5 | hits@10 | MRR | MRR ± | MRR, published ties | published hits@1 / 5 / 10 / MRR | queries (left out) | seeds | device, version |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        of_dataset.iter().for_each(|row| text.push_str(&row.ranking()));
    }
    let mut section = |title: &str, head: &str, of: &dyn Fn(&Row) -> Option<String>| {
        let lines: String = rows.iter().filter_map(of).collect();
        if !lines.is_empty() {
            let ruler = "|---".repeat(head.matches('|').count() - 1);
            let _ = write!(text, "\n## {title}\n\n{head}\n{ruler}|\n{lines}");
        }
    };
    section(
        "Validation split, tail queries (filtered without test answers; published figures filter by them)",
        "| data | system | hits@1 | hits@5 | hits@10 | MRR | MRR, test answers filtered too | published hits@1 / 5 / 10 / MRR | queries | seeds |",
        &|row: &Row| row.validation(),
    );
    section(
        "Validation facts that the walker was trained on, tail queries, asked as in training: \
         how well it finds facts that it has seen, not how well it generalises",
        "| data | system | hits@1 | hits@5 | hits@10 | MRR | MRR, test answers filtered too | published hits@1 / 5 / 10 / MRR | queries | seeds |",
        &|row: &Row| row.trained_valid(),
    );
    section(
        "Test split, both directions",
        "| data | system | hits@1 | hits@5 | hits@10 | MRR | queries | seeds |",
        &|row: &Row| row.both_directions(),
    );
    section(
        "Share of top answers whose path is a rule, end of pre-training (validation split) and of training (test split)",
        "| data | system | pre-training | training | published |",
        &|row: &Row| row.rule_share(),
    );
    let trained = compared_members().join(" | ");
    section(
        "Seconds by stage, and parameters of the walker",
        &format!("| data | system | {trained} | ranking | all | parameters |"),
        &|row: &Row| row.cost(),
    );
    text
}

/// The members whose seconds are compared: all but the calibration, which others do not have.
fn compared_members() -> Vec<&'static str> {
    member::names().filter(|name| *name != CALIBRATION).collect()
}

fn rows(results: &[RowResult]) -> Vec<Row<'_>> {
    let place = |system: &str| ORDER.iter().position(|name| *name == system).unwrap_or(ORDER.len());
    let mut groups: BTreeMap<(&str, &str, usize, &str), Vec<&RowResult>> = BTreeMap::new();
    for result in results {
        let key =
            (result.dataset.as_str(), result.split.as_str(), place(&result.system), result.system.as_str());
        groups.entry(key).or_default().push(result);
    }
    let row = |((dataset, split, _, system), seeds)| Row { dataset, system, split, seeds };
    groups.into_iter().map(row).collect()
}

impl Row<'_> {
    /// The mean over the seeds that have the figure.
    fn mean(&self, of: &dyn Fn(&RowResult) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.seeds.iter().filter_map(|result| of(result)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn spread(&self) -> Option<f64> {
        let mrr = |result: &RowResult| result.report.figures.mrr;
        let mean = self.mean(&|result| Some(mrr(result)))?;
        let squares: f64 = self.seeds.iter().map(|result| (mrr(result) - mean).powi(2)).sum();
        (self.seeds.len() > 1).then(|| (squares / (self.seeds.len() as f64 - 1.0)).sqrt())
    }

    fn seeds(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(|result| result.seed.to_string()).collect();
        seeds.join(", ")
    }

    /// Hits@1, @5, @10 and MRR as columns.
    fn figures(&self, of: &dyn Fn(&RowResult) -> Option<Figures>) -> Option<String> {
        let column = |column: fn(&Figures) -> f64| {
            self.mean(&|result| of(result).as_ref().map(column)).map(|mean| format!("{:.1}", 100.0 * mean))
        };
        let columns: Option<Vec<String>> =
            [column(|f| f.hits_at_1), column(|f| f.hits_at_5), column(|f| f.hits_at_10), column(|f| f.mrr)]
                .into_iter()
                .collect();
        Some(columns?.join(" | "))
    }

    /// The name under which the system's figures were published. Variants of a system (the settings that its authors
    /// published, the ways to measure a validation figure) share it.
    fn known_as(&self) -> &str {
        let (system, _) = self.system.split_once("-valid-").unwrap_or((self.system, ""));
        system.strip_suffix("-published").unwrap_or(system)
    }

    fn ranking(&self) -> String {
        let last = self.seeds[self.seeds.len() - 1];
        format!(
            "| {} | {} | {} | {} | {} | {} ({}) | {} | {}, {} |\n",
            self.system,
            self.figures(&|result| Some(result.report.figures)).unwrap_or_default(),
            percent(self.spread()),
            percent(self.mean(&|result| result.mrr_published_ties)),
            theirs(published().row(self.dataset, self.known_as(), self.split)),
            last.report.figures.queries,
            last.report.left_out,
            self.seeds(),
            last.device,
            last.version
        )
    }

    fn validation(&self) -> Option<String> {
        self.on_valid(&|result| result.valid, &|result| result.valid_as_published)
    }

    fn trained_valid(&self) -> Option<String> {
        self.on_valid(&|result| result.valid_taught, &|result| result.valid_taught_as_published)
    }

    /// Figures on the validation split, filtered without and with test answers.
    fn on_valid(
        &self,
        of: &dyn Fn(&RowResult) -> Option<Figures>,
        filtered: &dyn Fn(&RowResult) -> Option<Figures>,
    ) -> Option<String> {
        let figures = self.figures(of)?;
        let theirs = theirs(published().row(self.dataset, self.known_as(), "valid"));
        let queries = self.seeds.iter().find_map(|result| of(result))?.queries;
        let Row { dataset, system, .. } = self;
        let filtered = percent(self.mean(&|result| filtered(result).map(|figures| figures.mrr)));
        Some(format!(
            "| {dataset} | {system} | {figures} | {filtered} | {theirs} | {queries} | {} |\n",
            self.seeds()
        ))
    }

    fn both_directions(&self) -> Option<String> {
        let figures = self.figures(&|result| result.both)?;
        let queries = self.seeds.iter().find_map(|result| result.both)?.queries;
        let Row { dataset, system, .. } = self;
        Some(format!("| {dataset} | {system} | {figures} | {queries} | {} |\n", self.seeds()))
    }

    fn rule_share(&self) -> Option<String> {
        let training = self.mean(&|result| result.rule_share)?;
        let pretraining = self.mean(&|result| result.rule_share_pretraining);
        let theirs = published().row(self.dataset, self.system, self.split).and_then(|row| row.rule_share);
        let theirs = theirs.map_or_else(
            || "–".to_owned(),
            |share| format!("{:.1} → {:.1}", share.pretraining, share.training),
        );
        let Row { dataset, system, .. } = self;
        let (before, after) = (percent(pretraining), percent(Some(training)));
        Some(format!("| {dataset} | {system} | {before} | {after} | {theirs} |\n"))
    }

    fn cost(&self) -> Option<String> {
        let stage = |name: &str| self.mean(&|result| result.stage_seconds.get(name).copied());
        let whole = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), |s| format!("{s:.0}"));
        let ranking = self.mean(&|result| Some(result.report.seconds));
        let learning = compared_members();
        let all = learning.iter().filter_map(|name| stage(name)).sum::<f64>() + ranking.unwrap_or(0.0);
        let stages: Vec<String> = learning.iter().map(|name| whole(stage(name))).collect();
        let parameters = self.seeds.iter().find_map(|result| result.parameters);
        let parameters = parameters.map_or_else(|| "–".to_owned(), |count| count.to_string());
        let Row { dataset, system, .. } = self;
        let (stages, ranking, all) = (stages.join(" | "), whole(ranking), whole(Some(all)));
        Some(format!("| {dataset} | {system} | {stages} | {ranking} | {all} | {parameters} |\n"))
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

fn theirs(row: Option<&PublishedRow>) -> String {
    let figure = |figure: Option<f64>| figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.1}"));
    row.map_or_else(
        || "–".to_owned(),
        |row| [row.hits_at_1, row.hits_at_5, row.hits_at_10, row.mrr].map(figure).join(" / "),
    )
}
