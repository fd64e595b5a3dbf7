//! Pieces of HTML.

use crate::ask::PathStep;
use std::fmt::Write;

/// `text` escaped for HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(character),
        }
    }
    safe
}

/// A path from the entity called `from` as boxes and arrows; `name` gives the display name of a step's entity.
pub(crate) fn boxes(from: &str, path: &[PathStep], name: impl Fn(&PathStep) -> String) -> String {
    let mut html = format!("<span class=\"node\">{}</span>", escape(from));
    for step in path {
        let (relation, name) = (escape(step.relation_shown()), escape(&name(step)));
        let arrow = if step.inverse { format!("←{relation}—") } else { format!("—{relation}→") };
        // Writing to a string cannot fail.
        let _ = write!(html, "<span class=\"hop\">{arrow}</span><span class=\"node\">{name}</span>");
    }
    html
}

/// A table; the first column is text, the others are numbers. Cells are escaped. A table that is wider than the
/// screen scrolls; its caption stays.
pub(crate) fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = String::from("<table><thead><tr>");
    for name in head {
        // Writing to a string cannot fail, here and below.
        // A heading without text is none.
        let _ = match name.is_empty() {
            true => write!(html, "<td></td>"),
            false => write!(html, "<th scope=\"col\">{}</th>", escape(name)),
        };
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    region(caption, &html)
}

/// A table, or what else may be wide, with its caption: it scrolls, also by keyboard.
pub(crate) fn region(caption: &str, table: &str) -> String {
    let caption = escape(caption);
    format!(
        "<p class=\"caption\">{caption}</p><div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{caption}\">{table}</div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_markup_is_escaped() {
        let html = table("a & b", &["<x>"], &[vec!["\"y\"".to_owned()]]);
        assert!(html.contains("a &amp; b") && html.contains("&lt;x&gt;") && html.contains("&quot;y&quot;"));
    }
}
