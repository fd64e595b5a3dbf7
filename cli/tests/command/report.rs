//! `report`: what the page shows of a run's members and of its answers.

use crate::tool::Tool;

#[test]
fn the_page_has_the_curves_of_the_propagator_and_figures_by_situation() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let mut arguments = vec!["run", "data", "--quiet", "--out", "run", "--set", "system=propagator"];
    for set in ["propagate.epochs=3", "propagate.layers=2", "propagate.width=8"] {
        arguments.extend(["--set", set]);
    }
    tool.done(&arguments);
    let page = |folder: &str, more: &[&str]| {
        tool.done(&[&["report", "run", "--out", folder, "--quiet"], more].concat());
        std::fs::read_to_string(tool.path(&format!("{folder}/index.html"))).unwrap()
    };
    let plain = page("plain", &[]);
    // Curves are recorded under the name that the page looks for.
    for chart in ["propagation: on the validation split", "propagation: loss"] {
        assert!(plain.contains(chart), "no curve `{chart}`");
    }
    assert!(!plain.contains("By situation"), "that costs a second ranking and is only done if asked for");
    let divided = page("divided", &["--strata"]);
    assert!(divided.contains("By situation"));
    // Row for row what `evaluate` finds.
    let evaluated = tool.json(&["evaluate", "run", "--strata"]);
    let strata = evaluated["strata"].as_array().unwrap();
    for by in ["distance", "seen", "degree"] {
        assert!(strata.iter().any(|stratum| stratum["by"] == by), "{by}");
    }
    for stratum in strata {
        let cells = format!(
            "{}</td><td>{}</td><td>{:.1}</td>",
            stratum["value"].as_str().unwrap(),
            stratum["queries"],
            100.0 * stratum["hits@1"].as_f64().unwrap()
        );
        assert!(divided.contains(&cells), "no row `{cells}`");
    }
}
