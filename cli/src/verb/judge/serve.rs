//! `judge serve`: the server for judges.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use crate::http::listen;
use crate::judge::{Store, serve};
use crate::token;
use anyhow::{Context, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments of `judge serve`.
#[derive(clap::Args)]
#[command(
    after_help = "Every judge gets their own link. It is printed once, when the judge is added; only its hash is stored. A restarted \
server accepts the old links but cannot print them again. --renew makes a new link for a judge who has lost theirs, and \
keeps the votes. A vote is saved to disk before the page moves on. A judge can stop at any time and resume later, also on \
another device. Judges on other machines need a TLS proxy in front of the server; --url is the address that they use.

Examples:
  ruleguider judge serve study.db --judges 3
  ruleguider judge serve study.db --judges 5 --bind 127.0.0.1:8080 --url https://judge.example.org/
  ruleguider judge serve study.db --renew 2"
)]
pub struct Serve {
    /// A study that `judge prepare` made
    #[arg(value_name = "STUDY")]
    study: PathBuf,
    /// The number of judges; links are printed for new ones
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    judges: u32,
    /// Make a new link for this judge, which replaces the old one; may be given several times
    #[arg(long, value_name = "JUDGE")]
    renew: Vec<usize>,
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    bind: SocketAddr,
    /// The address that judges use, behind a proxy [default: the address it listens on]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

impl Serve {
    /// Adds judges, prints their links, and serves.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let hosts: Vec<String> = self.url.iter().map(|url| host_of(url)).collect::<anyhow::Result<_>>()?;
        let listener = listen(self.bind)?;
        let mut store = Store::serve(&self.study)?;
        let here = format!("http://{}/", listener.local_addr()?);
        let base = self.url.as_deref().unwrap_or(&here).trim_end_matches('/');
        let links = self.new_links(&mut store, base)?;
        if common.json {
            let links: Vec<_> =
                links.iter().map(|(judge, link)| json!({"judge": judge, "link": link})).collect();
            console::print_json(&json!({"address": here, "judges": store.judges()?, "links": links}))?;
        } else {
            console::print(&here)?;
            for (judge, link) in &links {
                console::print(&format_args!("judge {judge}: {link}"))?;
            }
            if links.is_empty() {
                let known = store.judges()?;
                console::print(&format_args!(
                    "{known} judges already have their links; --renew N makes a new one"
                ))?;
            }
        }
        console::flush()?;
        serve(listener, store, hosts)?;
        Ok(Outcome::Done)
    }

    fn new_links(&self, store: &mut Store, base: &str) -> anyhow::Result<Vec<(usize, String)>> {
        let mut links = Vec::new();
        for &judge in &self.renew {
            let token = token::new()?;
            store.renew(judge, &token::sum(&token)).with_context(|| format!("--renew {judge}"))?;
            links.push((judge, format!("{base}/#{token}")));
        }
        let study = store.study()?;
        for _ in store.judges()?..self.judges as usize {
            let token = token::new()?;
            let judge = store.add_judge(&study, &token::sum(&token))?;
            links.push((judge, format!("{base}/#{token}")));
        }
        Ok(links)
    }
}

/// The name in an address such as `https://judge.example.org/`.
fn host_of(url: &str) -> anyhow::Result<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', ':', '?', '#']).next()).filter(|host| !host.is_empty());
    ensure!(host.is_some(), "--url {url}: expected an address such as https://judge.example.org/");
    Ok(host.unwrap_or_default().to_owned())
}
