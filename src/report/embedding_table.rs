//! `results/embeddings.md`: the embedding models by themselves, with how they were trained, from the kept results.

use super::published::published;
use super::reproduce::RowResult;
use crate::embed::ModelKind;
use crate::eval::Figures;
use std::fmt::Write as _;

/// The table of all results of embedding models that record their training; `None` if there are none.
pub(super) fn embedding_table(results: &[RowResult]) -> Option<String> {
    let rows: Vec<&RowResult> =
        results.iter().filter(|result| result.training.is_some() && is_model(&result.system)).collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = String::from(
        "# Embedding models\n\nMade by `ruleguider embed --results` from the JSON files beside it; per cent. ",
    );
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "Ours: filtered. Published, in parentheses: {}; {}.\n",
        published().protocol.ranking,
        published().protocol.differs
    );
    text.push_str(
        "| data | model | hits@1 | hits@5 | hits@10 | MRR | direction, ties | queries (left out) | valid MRR | \
         epochs (kept) | training | an epoch | device memory | device |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for result in &rows {
        let _ = writeln!(text, "{}", row(result));
    }
    text.push_str("\nSettings are those of `configs/embed/`, which the commands pick up by the names of data and model:\n\n");
    for result in &rows {
        let plain = format!("ruleguider reproduce {} {}", result.dataset, result.system);
        let command = result.command.as_ref().unwrap_or(&plain);
        let _ = writeln!(
            text,
            "- {} {}, version {}, seed {}: `{command}`",
            result.dataset, result.system, result.version, result.seed
        );
    }
    Some(text)
}

fn is_model(system: &str) -> bool {
    ModelKind::ALL.iter().any(|kind| kind.name() == system)
}

fn row(result: &RowResult) -> String {
    let theirs = published().row(&result.dataset, &result.system, &result.split);
    let beside = |ours: f64, theirs: Option<f64>| match theirs {
        Some(theirs) => format!("{:.1} ({theirs:.1})", 100.0 * ours),
        None => format!("{:.1}", 100.0 * ours),
    };
    let Figures { queries, hits_at_1, hits_at_5, hits_at_10, mrr, .. } = result.report.figures;
    let training = result.training.as_ref().expect("only results with a training are shown");
    let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    format!(
        "| {} | {} | {} | {} | {} | {} | {}, {} | {queries} ({}) | {} | {} ({}) | {:.1} s | {:.2} s | {:.0} MiB | {} |",
        result.dataset,
        result.system,
        beside(hits_at_1, theirs.and_then(|row| row.hits_at_1)),
        beside(hits_at_5, theirs.and_then(|row| row.hits_at_5)),
        beside(hits_at_10, theirs.and_then(|row| row.hits_at_10)),
        beside(mrr, theirs.and_then(|row| row.mrr)),
        word(&result.report.direction),
        word(&result.report.ties),
        result.report.left_out,
        training.valid.map_or_else(|| "–".to_owned(), |valid| format!("{:.1}", 100.0 * valid.mrr)),
        training.epochs,
        training.best_epoch,
        training.training_seconds,
        training.epoch_seconds,
        training.device_memory_mb,
        result.device,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::Summary;
    use crate::eval::{Report, Side, Ties};
    use std::collections::BTreeMap;

    fn result(system: &str, trained: bool) -> RowResult {
        let figures = Figures {
            queries: 3134,
            hits_at_1: 0.4512,
            hits_at_5: 0.5351,
            hits_at_10: 0.5766,
            mrr: 0.4939,
            ..Figures::default()
        };
        let training = Summary {
            epochs: 20,
            best_epoch: 12,
            valid: Some(figures),
            last_minute: None,
            out_of_time: false,
            training_seconds: 12.34,
            epoch_seconds: 0.25,
            device_memory_mb: 500.4,
        };
        RowResult {
            dataset: "wn18rr".to_owned(),
            system: system.to_owned(),
            split: "test".to_owned(),
            seed: 1,
            version: "0.1.0".to_owned(),
            device: "cpu (2 threads)".to_owned(),
            config: String::new(),
            report: Report {
                figures,
                left_out: 0,
                sampled_from: None,
                direction: Side::Tail,
                ties: Ties::Realistic,
                seconds: 1.0,
                tails: None,
                heads: None,
                to_one: figures,
                to_many: figures,
                relations: Vec::new(),
                baseline: None,
                strata: None,
            },
            mrr_published_ties: None,
            both: None,
            valid: None,
            valid_as_published: None,
            valid_taught: None,
            valid_taught_as_published: None,
            parameters: None,
            stage_seconds: BTreeMap::new(),
            rule_share: None,
            rule_share_pretraining: None,
            training: trained.then_some(training),
            command: Some("ruleguider embed data/wn18rr".to_owned()),
        }
    }

    #[test]
    fn only_trained_models_are_shown_beside_the_published() {
        let all = [result("complex", true), result("distmult", false), result("minerva", true)];
        let text = embedding_table(&all).unwrap();
        let row = "| wn18rr | complex | 45.1 (41.5) | 53.5 (45.6) | 57.7 (46.9) | 49.4 (43.4) | tail, realistic | \
                   3134 (0) | 49.4 | 20 (12) | 12.3 s | 0.25 s | 500 MiB | cpu (2 threads) |\n";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("distmult") && !text.contains("minerva"), "{text}");
        assert!(text.contains("version 0.1.0, seed 1: `ruleguider embed data/wn18rr`"), "{text}");
        assert_eq!(embedding_table(&all[1..]), None);
    }
}
