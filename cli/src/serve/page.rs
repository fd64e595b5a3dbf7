//! The page and its files, embedded in the program.

use super::state::Shared;
use crate::http::files::{self, File, files};
use axum::Router;
use std::sync::Arc;

/// The page's own files; style and drawing are shared with the report.
const FILES: [File; 18] = files![
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
    "/app/around.js" "text/javascript; charset=utf-8" "around.js",
    "/app/between.js" "text/javascript; charset=utf-8" "between.js",
    "/app/list.js" "text/javascript; charset=utf-8" "list.js",
    "/app/queue.js" "text/javascript; charset=utf-8" "queue.js",
    "/app/home.js" "text/javascript; charset=utf-8" "home.js",
    "/app/decisions.js" "text/javascript; charset=utf-8" "decisions.js",
    "/app/review.js" "text/javascript; charset=utf-8" "review.js",
];

/// What a browser gets at an address where nothing is.
pub const NOWHERE: &str = include_str!("../../web/nowhere.html");

/// `router` with the files of the page.
pub fn routes(router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    files::routes(router, FILES.into_iter().chain(files::SHARED))
}

#[cfg(test)]
mod tests {
    use super::{FILES, File, files};

    #[test]
    fn the_page_is_small_and_writes_no_markup_from_data() {
        let files: Vec<File> = FILES.into_iter().chain(files::SHARED).collect();
        files::check(&files, 120 << 10);
    }
}
