//! `ruleguider embed`, as a user runs it.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn ruleguider(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruleguider"));
    command.args(arguments).args(["--quiet", "--device", "cpu"]);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn family(folder: &Path) -> PathBuf {
    let data = folder.join("family");
    let made = ruleguider(&["generate", "family", "--people", "60", "--out", text(&data)]).status();
    assert!(made.expect("the program starts").success());
    data
}

/// A small model, trained on `data` into `out`.
fn embed(data: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = ruleguider(&["embed", text(data), "--out", text(out), "--json"]);
    command.args(["--set", "dimension=16", "--set", "batch=128", "--set", "evaluate_every=5"]).args(more);
    command
}

fn json(output: &Output) -> Value {
    let message = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {message}"))
}

#[test]
fn the_figures_are_json_and_the_weights_give_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (family(folder.path()), folder.path().join("complex.safetensors"));
    let results = folder.path().join("results");
    let trained =
        embed(&data, &out, &["--set", "epochs=10", "--results", results.to_str().unwrap()]).output();
    let trained = json(&trained.unwrap());
    for key in
        ["queries", "left_out", "hits@1", "hits@10", "mrr", "direction", "ties", "seconds", "best_epoch"]
    {
        assert!(trained.get(key).is_some(), "{key} is missing in {trained}");
    }
    let weights = ["embed", data.to_str().unwrap(), "--json", "--weights", out.to_str().unwrap()];
    let loaded = json(&ruleguider(&weights).output().unwrap());
    for key in ["queries", "hits@1", "mrr", "mean_rank", "model"] {
        assert_eq!(loaded[key], trained[key], "{key}");
    }
    let record: Value =
        serde_json::from_str(&fs::read_to_string(results.join("family-complex.json")).unwrap()).unwrap();
    assert_eq!((&record[0]["mrr"], &record[0]["training"]["epochs"]), (&trained["mrr"], &Value::from(10)));
    assert!(fs::read_to_string(results.join("embeddings.md")).unwrap().contains("| family | complex |"));
    let curves =
        fs::read_to_string(folder.path().join("complex.safetensors.training/metrics.jsonl")).unwrap();
    assert_eq!(curves.lines().count(), 10);
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let data = family(folder.path());
    let epochs = ["--set", "epochs=800", "--set", "patience=1000"];
    let whole = json(&embed(&data, &folder.path().join("whole.safetensors"), &epochs).output().unwrap());
    let out = folder.path().join("pieces.safetensors");
    let curves = folder.path().join("pieces.safetensors.training/metrics.jsonl");
    let mut child = embed(&data, &out, &epochs).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while fs::read_to_string(&curves).map_or(0, |text| text.lines().count()) < 3 {
        assert!(began.elapsed() < Duration::from_secs(120), "no epoch came to its end");
        std::thread::sleep(Duration::from_millis(2));
    }
    let second = embed(&data, &out, &epochs).output().unwrap();
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        second.status.code() == Some(2) && message.contains("another training is using this folder"),
        "{message}"
    );
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!out.exists());
    let pieces = json(&embed(&data, &out, &epochs).output().unwrap());
    for key in ["hits@1", "mrr", "mean_rank", "best_epoch", "epochs"] {
        assert_eq!(pieces[key], whole[key], "{key}");
    }
}

#[test]
fn mistakes_end_with_code_2_and_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (family(folder.path()), folder.path().join("out.safetensors"));
    let damaged = folder.path().join("damaged.safetensors");
    fs::write(&damaged, "no weights").unwrap();
    let damaged = damaged.to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["--set", "epoch=3"], "epoch=3: unknown setting `epoch`; did you mean `epochs`?"),
        (&["--set", "batch=none"], "batch=none: `batch`: expected a whole number, 0 or more, found"),
        (&["--model", "transe"], "use distmult, complex, conve or rotate"),
        (&["--config", "nowhere.toml"], "nowhere.toml"),
    ];
    for (arguments, message) in cases {
        let output = embed(&data, &out, arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(message), "{text}");
    }
    let output = ruleguider(&["embed", data.to_str().unwrap(), "--weights", damaged]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("damaged.safetensors"), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}
