//! The page and its files, which are in the program itself.

use super::state::Shared;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ruleguider::report::page::{DRAWING, STYLE};
use ruleguider::run::Checksum;
use std::sync::Arc;

/// A file of the page: its address, its kind, its text.
type File = (&'static str, &'static str, &'static str);

macro_rules! files {
    ($($path:literal $kind:literal $file:literal,)*) => {
        [$(($path, $kind, include_str!(concat!("../../web/", $file)))),*]
    };
}

/// The files of its own; style and drawing are those of the report.
const FILES: [File; 12] = files![
    "/" "text/html; charset=utf-8" "index.html",
    "/style.css" "text/css; charset=utf-8" "style.css",
    "/icon.svg" "image/svg+xml" "icon.svg",
    "/app/main.js" "text/javascript; charset=utf-8" "main.js",
    "/app/dom.js" "text/javascript; charset=utf-8" "dom.js",
    "/app/api.js" "text/javascript; charset=utf-8" "api.js",
    "/app/combobox.js" "text/javascript; charset=utf-8" "combobox.js",
    "/app/answers.js" "text/javascript; charset=utf-8" "answers.js",
    "/app/why.js" "text/javascript; charset=utf-8" "why.js",
    "/app/entity.js" "text/javascript; charset=utf-8" "entity.js",
    "/app/relation.js" "text/javascript; charset=utf-8" "relation.js",
    "/app/judged.js" "text/javascript; charset=utf-8" "judged.js",
];

/// What the report has too.
const SHARED: [File; 2] = [
    ("/base.css", "text/css; charset=utf-8", STYLE),
    ("/app/draw.js", "text/javascript; charset=utf-8", DRAWING),
];

/// `router` with the files of the page.
pub fn routes(mut router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    for file in FILES.into_iter().chain(SHARED) {
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

#[cfg(test)]
mod tests {
    use super::{FILES, SHARED};

    #[test]
    fn the_page_is_small_and_writes_no_markup_from_data() {
        let files = || FILES.into_iter().chain(SHARED);
        let bytes: usize = files().map(|file| file.2.len()).sum();
        assert!(bytes < 120_000, "{bytes} bytes");
        for (path, _, text) in files() {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "http://",
                "https://",
            ] {
                let namespace = text.replace("http://www.w3.org/2000/svg", "");
                assert!(!namespace.contains(forbidden), "{path} has {forbidden}");
            }
        }
    }
}
