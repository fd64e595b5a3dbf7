//! Do rules beside the universal propagator rank better, by one set of weights for all graphs?
//!
//! `cargo bench --bench instant -- DATA … [--facts N] [--set KEY=VALUE …]`
//! mines rules over the training facts of every graph, by the settings of instant answers, and asks for both ends of at most
//! N of its held-out facts (150). A blend of rules and propagator has weights that were fitted to the queries of all other
//! graphs. Prints the mean reciprocal rank by the propagator alone, by the rules alone, by the blend, and by weights
//! that go on from those of the blend with half of the graph's own queries; then the weights that fit all graphs.

#![allow(clippy::print_stdout)]

use ruleguider::ask::INSTANT;
use ruleguider::config::{Config, Layer};
use ruleguider::graph::{Dataset, ReadOptions, evenly, read};
use ruleguider::progress::Silent;
use ruleguider::reason::{
    Blend, ByPropagator, ByRules, FeatureWeights, Further, JudgedQueries, Members, PathRuleIndex, Recipe,
};
use ruleguider::rule::{self, ScoredRule};
use ruleguider::tensor::Device;
use ruleguider::universal::{Universal, UniversalReasoner};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The columns of figures.
const COLUMNS: [&str; 4] = ["propagator", "rules", "blend", "refined"];

fn main() -> Outcome<()> {
    let (mut names, mut facts, mut settings) = (Vec::new(), 150, INSTANT.map(str::to_owned).to_vec());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--facts" => facts = value()?.parse()?,
            "--set" => settings.push(value()?),
            _ => names.push(argument),
        }
    }
    let config = Config::default().with(&Layer::from_pairs(settings.iter().map(String::as_str))?)?;
    let universal = Arc::new(Universal::shipped(&Device::cpu(2)?)?);
    let mut graphs = Vec::new();
    for name in names {
        let folder = Path::new(&name);
        let file = folder.join("facts.tsv.gz");
        let place = if file.exists() { &file } else { folder };
        let dataset = read(place, &ReadOptions { incomplete: true, ..ReadOptions::default() })?;
        let judged = judged(&dataset, &config, Arc::clone(&universal), facts)?;
        graphs.push((folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), judged));
    }
    print_table(&graphs);
    Ok(())
}

/// The held-out facts of a graph, asked for by rules and propagator.
fn judged(
    dataset: &Dataset,
    config: &Config,
    universal: Arc<Universal>,
    facts: usize,
) -> Outcome<JudgedQueries> {
    let graph = dataset.graph_of(&dataset.known);
    let rules: Arc<[ScoredRule]> = rule::mine(&graph, &config.rules.mine_options(1), &Silent)?.rules.into();
    let universal = Arc::new(UniversalReasoner::new(universal, &graph)?);
    let reasoner = Arc::new(ByPropagator::new(universal, &graph, PathRuleIndex::new(&rules).into()));
    let members = Members {
        rules: Some(Arc::new(ByRules::new(&graph, rules, config.rules.apply_options()))),
        walker: None,
        embedding: None,
        propagator: None,
        further: vec![Further { name: "universal", reasoner }],
    };
    let blend = Blend::new(members, &Recipe::given(&config.blend), &graph, &dataset.names);
    let held_out = [&dataset.test[..], &dataset.known.valid].concat();
    Ok(blend.judge(&evenly(&held_out, facts), &dataset.answers(), &Silent)?)
}

fn print_table(graphs: &[(String, JudgedQueries)]) {
    let propagator =
        FeatureWeights { further: [("universal".to_owned(), 1.0)].into(), ..FeatureWeights::default() };
    let rules = FeatureWeights { rules: 1.0, rules_absent: 1e-4f64.ln(), ..FeatureWeights::default() };
    // Of which features a blend consists.
    let kept = FeatureWeights::of_many_graphs();
    let graphs: Vec<(&str, JudgedQueries)> =
        graphs.iter().map(|(name, judged)| (name.as_str(), judged.with_only(&kept))).collect();
    let row = |name: &str, figures: &[f64]| {
        let figures: String = figures.iter().map(|figure| format!("{:>12.1}", 100.0 * figure)).collect();
        println!("{name:<24}{figures}");
    };
    println!("{:<24}{}", "graph", COLUMNS.map(|column| format!("{column:>12}")).concat());
    let mut sums = [0.0; COLUMNS.len()];
    for (at, (name, judged)) in graphs.iter().enumerate() {
        let others = graphs.iter().enumerate().filter(|(other, _)| *other != at);
        let fitted = JudgedQueries::together(others.map(|(_, graph)| &graph.1)).fitted(&propagator);
        let [first, second] = judged.halves();
        let refined = [(&first, &second), (&second, &first)]
            .map(|(own, apart)| apart.mrr(&own.fitted(&fitted)))
            .iter()
            .sum::<f64>()
            / 2.0;
        let figures = [judged.mrr(&propagator), judged.mrr(&rules), judged.mrr(&fitted), refined];
        row(name, &figures);
        sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure / graphs.len() as f64);
    }
    row("mean", &sums);
    let all = JudgedQueries::together(graphs.iter().map(|graph| &graph.1)).fitted(&propagator);
    println!("\n{all:#?}");
}
