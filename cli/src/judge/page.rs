//! The page of judges. Style and drawing are those of `serve`.

use crate::http::files::{self, File, files};
use axum::Router;

const FILES: [File; 7] = files![
    "/" "text/html; charset=utf-8" "judge/index.html",
    "/judge.css" "text/css; charset=utf-8" "judge/style.css",
    "/style.css" "text/css; charset=utf-8" "style.css",
    "/icon.svg" "image/svg+xml" "icon.svg",
    "/app/judge.js" "text/javascript; charset=utf-8" "judge/judge.js",
    "/app/dom.js" "text/javascript; charset=utf-8" "dom.js",
    "/app/api.js" "text/javascript; charset=utf-8" "api.js",
];

/// `router` with the files of the page.
pub fn routes<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    files::routes(router, FILES.into_iter().chain(files::SHARED))
}

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn the_page_is_small_and_writes_no_markup_from_data() {
        crate::http::files::check(&FILES, 60_000);
    }
}
