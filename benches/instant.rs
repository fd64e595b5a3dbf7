//! Do rules beside the universal propagator rank better, by one set of weights for all graphs?
//!
//! `cargo bench --bench instant -- [DATA …] [--facts N] [--seconds S] [--length L]`
//! reads graphs, by default those of the folder that `RULEGUIDER_DATA` names, mines rules over the training facts as
//! instant answers do, and asks for both ends of at most N held-out facts of each. The weights for a graph are fitted to the
//! queries of all others. Prints the mean reciprocal rank by the propagator alone, by the rules alone, and by blends of
//! more and more features, then the weights that were fitted to all graphs.

#![allow(clippy::print_stdout)]

use ruleguider::config::{Config, Layer};
use ruleguider::graph::{Dataset, ReadOptions, evenly, read};
use ruleguider::progress::Silent;
use ruleguider::reason::{
    Blend, ByPropagator, ByRules, FeatureWeights, Further, JudgedQueries, Members, Recipe,
};
use ruleguider::rule;
use ruleguider::tensor::Device;
use ruleguider::universal::{Universal, UniversalReasoner};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Options {
    facts: usize,
    seconds: f64,
    length: usize,
    device: Device,
}

fn main() -> Outcome<()> {
    let (mut names, mut facts, mut seconds, mut length) = (Vec::new(), 300, 0.6, 2);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--facts" => facts = value()?.parse()?,
            "--seconds" => seconds = value()?.parse()?,
            "--length" => length = value()?.parse()?,
            _ => names.push(argument),
        }
    }
    let options = Options { facts, seconds, length, device: Device::cpu(2)? };
    let mut graphs = Vec::new();
    for name in names {
        let clock = Instant::now();
        let place = Path::new(&name);
        let facts = place.join("facts.tsv.gz");
        let place = if facts.exists() { &facts } else { place };
        let dataset = read(place, &ReadOptions { incomplete: true, ..ReadOptions::default() })?;
        let judged = judged(&dataset, &options)?;
        eprintln!("{name}: {:.1} s", clock.elapsed().as_secs_f64());
        let name =
            Path::new(&name).file_name().map_or(name.clone(), |name| name.to_string_lossy().into_owned());
        graphs.push((name, judged));
    }
    table(&graphs);
    Ok(())
}

fn judged(dataset: &Dataset, options: &Options) -> Outcome<JudgedQueries> {
    let known = &dataset.known;
    let graph = Arc::new(dataset.graph_of(known));
    let (seconds, length) = (options.seconds, options.length);
    let settings = [format!("rules.seconds={seconds}"), format!("rules.max_length={length}")];
    let config = Config::default().with(&Layer::from_pairs(settings.iter().map(String::as_str))?)?;
    let mined = rule::mine(&graph, &config.rules.mine_options(1), &Silent)?;
    let rules: Arc<[rule::ScoredRule]> = mined.rules.into();
    let universal = Arc::new(Universal::shipped(&options.device)?);
    let universal = Arc::new(UniversalReasoner::new(universal, &graph)?);
    let reasoner = Arc::new(ByPropagator::new(universal, &graph, &rules));
    let members = Members {
        rules: Some(Arc::new(ByRules::new(&graph, rules, config.rules.apply_options()))),
        walker: None,
        embedding: None,
        propagator: None,
        further: vec![Further { name: "universal", reasoner }],
    };
    let recipe = Recipe::of(config.blend.weights()).with_further(["universal"]);
    let blend = Blend::new(members, &recipe, &graph, &dataset.names);
    let held_out = [&dataset.test[..], &known.valid].concat();
    let asked = evenly(&held_out, options.facts);
    Ok(blend.judge(&asked, &dataset.answers(), &Silent)?)
}

fn table(graphs: &[(String, JudgedQueries)]) {
    let universal =
        FeatureWeights { further: [("universal".to_owned(), 1.0)].into(), ..FeatureWeights::default() };
    let rules = FeatureWeights { rules: 1.0, rules_absent: 1e-4f64.ln(), ..FeatureWeights::default() };
    let log = FeatureWeights { rules: 0.1, rules_absent: -1.0, ..universal.clone() };
    let all_rules = FeatureWeights { rules_sure: 0.1, ..log.clone() };
    let features =
        FeatureWeights { linked: 0.1, linked_back: 0.1, taken: 0.1, frequency: 0.1, ..universal.clone() };
    let linked = FeatureWeights { linked: 0.1, linked_back: 0.1, ..all_rules.clone() };
    let taken = FeatureWeights { taken: 0.1, frequency: 0.1, ..all_rules.clone() };
    let all = FeatureWeights { taken: 0.1, frequency: 0.1, ..linked.clone() };
    let blends = [
        ("log", &log),
        ("+sure", &all_rules),
        ("graph", &features),
        ("r+link", &linked),
        ("r+freq", &taken),
        ("all", &all),
    ];
    print!("{:<24}{:>8}{:>8}", "graph", "univ", "rules");
    blends.iter().for_each(|(name, _)| print!("{name:>8}"));
    println!();
    let mut sums = vec![0.0; blends.len() + 2];
    for (at, (name, judged)) in graphs.iter().enumerate() {
        let mut row = vec![judged.mrr(&universal), judged.mrr(&rules)];
        for (_, kept) in blends {
            let others =
                graphs.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (_, judged))| judged);
            let fitted = JudgedQueries::together(others).with_only(kept).fitted(&universal);
            row.push(judged.with_only(kept).mrr(&fitted));
        }
        print!("{name:<24}");
        for (value, sum) in row.iter().zip(&mut sums) {
            print!("{:>8.1}", 100.0 * value);
            *sum += value / graphs.len() as f64;
        }
        println!();
    }
    print!("{:<24}", "mean");
    sums.iter().for_each(|mean| print!("{:>8.1}", 100.0 * mean));
    println!();
    for (name, kept) in blends {
        let fitted =
            JudgedQueries::together(graphs.iter().map(|graph| &graph.1)).with_only(kept).fitted(&universal);
        println!("{name}: {fitted:?}");
    }
}
