//! Results as pieces of HTML for notebooks, with the drawing of the page.
//!
//! The page uses the same `draw.js` and `draw.css`. A piece is self-contained: it includes the script, its data, and a
//! plain-text version in case scripts do not run.

use super::page::escape;
use crate::ask::{DrawnRule, Explanation, MissingFact, Prediction};
use crate::graph::{Dataset, Direction, Link, RelationId};
use crate::shown::Shown;
use serde::Serialize;
use serde_json::json;
use std::sync::LazyLock;

/// How paths are drawn: a JavaScript module.
pub const DRAWING: &str = include_str!("draw.js");
/// The style sheet of drawings.
pub const STYLE: &str = include_str!("draw.css");

const NOTEBOOK: &str = include_str!("notebook.js");
const NOTEBOOK_STYLE: &str = include_str!("notebook.css");

/// How many rules or missing facts are drawn.
const SHOWN: usize = 12;
/// How many relations of a graph are drawn, and how many facts of each.
const RELATIONS: usize = 3;
const FACTS: usize = 4;

/// Both modules as one script without imports, exports and comments.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let lines = DRAWING.lines().chain(NOTEBOOK.lines());
    let own = lines.filter(|line| {
        let text = line.trim_start();
        !(text.is_empty() || ["import ", "//", "/**", "* ", "*/"].iter().any(|mark| text.starts_with(mark)))
    });
    own.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
});

/// The answers to a query; `plain` is the same as text.
pub fn prediction(prediction: &Prediction, plain: &str) -> String {
    piece("predictionView", prediction, plain)
}

/// Why, or why not.
pub fn explanation(explanation: &Explanation, plain: &str) -> String {
    piece("explanationView", explanation, plain)
}

/// The first of `total` rules.
pub fn rules(rules: &[DrawnRule], total: usize, plain: &str) -> String {
    piece("rulesView", &json!({ "rules": &rules[..rules.len().min(SHOWN)], "total": total }), plain)
}

/// The first of `total` missing facts.
pub fn facts(facts: &[MissingFact], total: usize, plain: &str) -> String {
    piece("factsView", &json!({ "facts": &facts[..facts.len().min(SHOWN)], "total": total }), plain)
}

/// The size of a data set, and a few facts of its most frequent relations.
pub fn graph(dataset: &Dataset, plain: &str) -> String {
    let Dataset { names, known, test, .. } = dataset;
    let graph = dataset.graph();
    let mut relations: Vec<RelationId> = (0..names.relations.len() as u32).map(RelationId).collect();
    let count = |relation: RelationId| graph.pairs(Link::new(relation, Direction::Forward)).len();
    relations.sort_by_key(|&relation| std::cmp::Reverse(count(relation)));
    let drawn = relations.iter().filter(|&&relation| count(relation) > 0).take(RELATIONS).map(|&relation| {
        let paths = graph.pairs(Link::forward(relation)).pairs().take(FACTS).map(|(head, tail)| {
            let step = json!({
                "relation": names.relation_label(relation), "inverse": false,
                "entity": names.entity(tail), "label": names.label(tail),
            });
            json!({ "from": names.label(head), "from_id": names.entity(head), "path": [step] })
        });
        let paths: Vec<_> = paths.collect();
        json!({ "relation": names.relation_label(relation), "facts": count(relation), "paths": paths })
    });
    let drawn: Vec<_> = drawn.collect();
    let figures = json!([
        ["entities", names.entities.len()],
        ["relations", names.relations.len()],
        ["facts", known.facts.len()],
        ["valid", known.valid.len()],
        ["test", test.len()],
    ]);
    piece("graphView", &json!({ "figures": figures, "relations": drawn }), plain)
}

/// A piece of HTML that shows `data` with a view of `notebook.js`.
fn piece(view: &str, data: &impl Serialize, plain: &str) -> String {
    let data = serde_json::to_string(data).expect("results are plain data");
    // A closing script tag inside the data would end the script.
    let data = data.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let (script, plain) = (&*SCRIPT, escape(&Shown(plain).to_string()));
    format!(
        "<div><style>{NOTEBOOK_STYLE}{STYLE}</style><div class=\"ruleguider\"><pre>{plain}</pre></div>\
         <script>{{\nconst place = document.currentScript.previousElementSibling;\n{script}\
         show(place, {view}, {data});\n}}</script></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_carries_the_drawing_of_the_page_and_no_markup_from_data() {
        let mut dataset = crate::generate::demonstration();
        let names = std::sync::Arc::make_mut(&mut dataset.names);
        let first = dataset.known.facts[0];
        names.relation_labels.insert(first.relation, "</script><b>\u{2028}".to_owned());
        let html = graph(&dataset, "1 < 2");
        assert_eq!(html.matches("</script>").count(), 1);
        assert!(!html.contains("<b>") && !html.contains('\u{2028}') && html.contains("1 &lt; 2"));
        assert!(html.contains("function drawing(") && html.contains("show(place, graphView, {"));
        for line in DRAWING.lines().filter(|line| line.starts_with("export ")) {
            assert!(html.contains(&line["export ".len()..]), "{line}");
        }
        assert!(!SCRIPT.contains("import ") && !SCRIPT.contains("export "));
    }
}
