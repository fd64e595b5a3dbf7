//! `serve`: an HTTP API and a page over runs.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use crate::http::{Limits, listen};
#[cfg(feature = "live")]
use crate::live::log::Log;
#[cfg(feature = "live")]
use crate::live::tokens::Tokens;
#[cfg(feature = "live")]
use crate::serve::Editable;
use crate::serve::{Options, serve};
use anyhow::Context;
#[cfg(feature = "live")]
use anyhow::bail;
use ruleguider::ask::{Model, OpenOptions};
use serde_json::json;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `serve`.
#[derive(clap::Args)]
#[command(
    after_help = "The page is at the address that is printed; /api/openapi.json describes the API. Runs are not modified; with --live, facts and verdicts are kept beside them. On \
SIGTERM or Ctrl-C, requests in progress are finished first. Behind a proxy, give the public host name with --host.

Examples:
  ruleguider serve runs/demonstration
  ruleguider serve runs/demonstration --live live.db
  ruleguider serve runs/wn18rr runs/fb15k-237 --bind 0.0.0.0:8080 --host graphs.example.org"
)]
pub struct Serve {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    bind: SocketAddr,
    /// Another origin whose pages may call the API, such as https://notebook.example.org
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    cors: Option<String>,
    /// A host name that requests may use, besides localhost and IP addresses; may be given several times
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    host: Vec<String>,
    /// The time limit of a request, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    timeout_s: f64,
    /// The maximum number of requests at once; more are rejected with 503
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65536))]
    waiting: u32,
    /// The maximum memory of request bodies and unsent responses, in MB; requests beyond it are rejected with 503
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(32..=4096))]
    in_flight_mb: u32,
    /// Let facts and verdicts be written: kept in this file (SQLite), which is made if there is none; with one RUN
    #[cfg(feature = "live")]
    #[arg(long, value_name = "FILE")]
    live: Option<PathBuf>,
    /// Who may do what: a file of names, roles and checksums of tokens, made by `ruleguider live token`
    #[cfg(feature = "live")]
    #[arg(long, value_name = "FILE", requires = "live")]
    tokens: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| format!("expected 0.01 to 86400 seconds, found {text}"))
}

/// An origin as browsers send it: scheme, host and perhaps a port, with nothing after them.
fn origin(text: &str) -> Result<String, String> {
    let place = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let (host, port) = place.map_or(("", None), |place| match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    });
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let known = is_host_name(host) || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    match known && port.is_none_or(|port| port.parse::<u16>().is_ok()) {
        true => Ok(text.to_owned()),
        false => Err("expected a scheme and a host, such as https://notebook.example.org".to_owned()),
    }
}

fn host_name(text: &str) -> Result<String, String> {
    match is_host_name(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a host name without a port, such as graphs.example.org".to_owned()),
    }
}

fn is_host_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.len() < 256 && text.bytes().all(allowed)
}

impl Serve {
    /// Opens the runs and serves them.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        #[cfg(feature = "live")]
        let tokens = self.tokens()?;
        let listener = listen(self.bind)?;
        let device = common.device_for_many()?;
        let workers = device.workers();
        let options = OpenOptions { device: Some(device), ..OpenOptions::DEFAULT };
        let mut models: Vec<(String, Arc<Model>)> = Vec::new();
        for path in &self.runs {
            let model = options.open(path)?;
            models.push((name_of(path, &models)?, Arc::new(model)));
        }
        let address = listener.local_addr()?;
        #[cfg(feature = "live")]
        let live = match &self.live {
            Some(file) => Some(Editable {
                run: self.runs[0].clone(),
                log: Log::work_on(file)?,
                tokens,
                open: options.clone(),
            }),
            None => None,
        };
        match common.json {
            true => console::print_json(&json!({"address": format!("http://{address}/")}))?,
            false => console::print(&format_args!("http://{address}/"))?,
        }
        let options = Options {
            cors: self.cors.clone(),
            hosts: self.host.clone(),
            limits: Limits {
                waiting: self.waiting as usize,
                running: workers,
                timeout: Duration::from_secs_f64(self.timeout_s),
                in_flight: (self.in_flight_mb as usize) << 20,
            },
            #[cfg(feature = "live")]
            live,
        };
        serve(listener, models, options)?;
        Ok(Outcome::Done)
    }

    /// The tokens, once it is clear that facts may be written at all.
    #[cfg(feature = "live")]
    fn tokens(&self) -> anyhow::Result<Option<Tokens>> {
        if self.live.is_some() && self.runs.len() > 1 {
            bail!("--live needs one RUN, found {}", self.runs.len());
        }
        if self.live.is_some() && self.tokens.is_none() && !self.bind.ip().is_loopback() {
            bail!("--live on {} needs --tokens FILE: everyone who reaches it could write", self.bind);
        }
        self.tokens.as_deref().map(Tokens::read).transpose()
    }
}

/// The name of the run at `path`: its folder's, with a number if that is taken.
fn name_of(path: &Path, taken: &[(String, Arc<Model>)]) -> anyhow::Result<String> {
    let whole = path.canonicalize().with_context(|| format!("{}: cannot be read", path.display()))?;
    let folder = whole.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let free = |name: &String| taken.iter().all(|(other, _)| other != name);
    let numbered = (2..).map(|number| format!("{folder}-{number}"));
    // `runs` is the name of a route.
    let plain = std::iter::once(folder.clone()).filter(|name| name != "runs");
    Ok(plain.chain(numbered).find(free).unwrap_or(folder))
}

#[cfg(test)]
mod tests {
    use super::{host_name, origin};

    #[test]
    fn origins_and_hosts_that_no_request_has_are_refused() {
        for good in ["https://a", "http://a.example:8080", "https://[::1]:80", "http://127.0.0.1"] {
            assert_eq!(origin(good).as_deref(), Ok(good));
        }
        for bad in [
            "https://a/",
            "https://a\r\nX: y",
            "a",
            "https://",
            "https://a:",
            "https://a:x",
            "ftp://a",
            "https://*",
        ] {
            assert!(origin(bad).is_err(), "{bad:?}");
        }
        assert!(host_name("graphs.example.org").is_ok());
        for bad in ["evil.com:80", "*", "", "a b", "https://a", "a/"] {
            assert!(host_name(bad).is_err(), "{bad:?}");
        }
    }
}
