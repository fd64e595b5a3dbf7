//! The files of a page, embedded in the program.

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ruleguider::report::figure;
use ruleguider::report::page::STYLE;
use ruleguider::run::Checksum;

/// A file of a page: its address, its kind, its text.
pub type File = (&'static str, &'static str, &'static str);

/// Files by address, kind and their names in `cli/web`.
macro_rules! files {
    ($($path:literal $kind:literal $file:literal,)*) => {
        [$(($path, $kind, include_str!(concat!("../../web/", $file)))),*]
    };
}
pub(crate) use files;

/// Style and path drawing shared by all pages, including the report.
pub const SHARED: [File; 3] = [
    ("/base.css", "text/css; charset=utf-8", STYLE),
    ("/draw.css", "text/css; charset=utf-8", figure::STYLE),
    ("/app/draw.js", "text/javascript; charset=utf-8", figure::DRAWING),
];

/// `router` with `files`.
pub fn routes<S: Clone + Send + Sync + 'static>(
    mut router: Router<S>,
    files: impl Iterator<Item = File>,
) -> Router<S> {
    for file in files {
        let tag = format!("\"{}\"", &Checksum::of(&file.2).to_string()[..32]);
        router =
            router.route(file.0, get(move |headers: HeaderMap| async move { sent(file, &tag, &headers) }));
    }
    router
}

fn sent((_, kind, text): File, tag: &str, headers: &HeaderMap) -> Response {
    let has = headers.get(header::IF_NONE_MATCH).is_some_and(|has| has.as_bytes() == tag.as_bytes());
    let mut response = if has { StatusCode::NOT_MODIFIED.into_response() } else { text.into_response() };
    let sent = response.headers_mut();
    sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    sent.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        sent.insert(header::ETAG, tag);
    }
    response
}

/// Fails if the files of a page are larger than `bytes`, write markup from data, or name other hosts.
#[cfg(test)]
pub fn check(files: &[File], bytes: usize) {
    let all: usize = files.iter().map(|file| file.2.len()).sum();
    assert!(all <= bytes, "{all} bytes, expected at most {bytes}");
    let markup =
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"];
    for (path, _, text) in files {
        for forbidden in markup {
            let namespace = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!namespace.contains(forbidden), "{path} has {forbidden}");
        }
    }
}
