//! Divides mining into parts, as several processes or machines would, and merges them: byte for byte what one process
//! writes.
//!
//!     cargo run --release --example shards -- data/wn18rr

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::ask::{merge, mine_shard};
use ruleguider::generate::demonstration;
use ruleguider::graph::{self, ReadOptions};
use ruleguider::progress::Silent;
use ruleguider::rule::{MineOptions, MiningBudget};
use ruleguider::shard::Shard;
use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let dataset = match std::env::args().nth(1) {
        Some(path) => graph::read(Path::new(&path), &ReadOptions::default())?,
        None => demonstration(),
    };
    // Parts are repeatable only without a time limit.
    let options = MineOptions { budget: MiningBudget::Saturation, ..MineOptions::default() };
    let folder = tempfile::tempdir()?;
    let mined = |of: u64| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut parts: Vec<PathBuf> = Vec::new();
        for part in 1..=of {
            let path = folder.path().join(format!("{part}-of-{of}.shard"));
            mine_shard(&dataset, &options, Shard::new(part, of).ok_or("no such part")?, &path, &Silent)?;
            parts.push(path);
        }
        let out = folder.path().join(format!("{of}.tsv"));
        println!("{}", merge(&parts, Some(&out))?);
        Ok(std::fs::read(out)?)
    };
    let (whole, divided) = (mined(1)?, mined(4)?);
    println!("one part and four give the same file: {}", whole == divided);
    Ok(())
}
