//! The pictures in the documents show the pages as they are.
//!
//! Beside the pictures stands a checksum of the files that they were made of. CONTRIBUTING.md says how to take them again.

use ruleguider::run::Checksum;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What the pictures of a folder are made of.
fn sources(folder: &str) -> Vec<PathBuf> {
    let own = if folder == "docs/judge" { "cli/web/judge" } else { "cli/web" };
    let files = std::fs::read_dir(Path::new(ROOT).join(own)).expect("the files of a page");
    let mut files: Vec<PathBuf> =
        files.map(|file| file.expect("a file").path()).filter(|path| path.is_file()).collect();
    let shared = ["src/report/page/page.css", "src/report/figure/draw.css", "src/report/figure/draw.js"];
    files.extend(shared.map(|file| Path::new(ROOT).join(file)));
    files.sort();
    files
}

#[test]
fn the_pictures_of_the_documents_show_the_pages_as_they_are() {
    for folder in ["docs/serve", "docs/judge"] {
        let files: Vec<(String, String)> = sources(folder)
            .iter()
            .map(|path| {
                (
                    path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                    std::fs::read_to_string(path).expect("text"),
                )
            })
            .collect();
        let (sum, kept) =
            (Checksum::of(&files).to_string(), Path::new(ROOT).join(folder).join("pictures.sum"));
        if std::env::var_os("RULEGUIDER_SCREENSHOTS").is_some() {
            std::fs::write(&kept, format!("{sum}\n")).expect("the folder can be written to");
        }
        let kept = std::fs::read_to_string(&kept).unwrap_or_default();
        assert!(
            kept.trim() == sum,
            "the page has changed since the pictures in {folder} were taken: CONTRIBUTING.md says how to take them again"
        );
    }
}
