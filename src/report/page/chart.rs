//! Charts as SVG text, drawn here so that the page needs no script.

use super::html::escape;
use std::fmt::Write;

/// The height of a chart in its own units; the page scales it to the available width.
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;
/// More points than this are indistinguishable.
const MOST_POINTS: usize = 400;

/// A line of a chart.
pub(crate) struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// How wide a chart is on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartWidth {
    /// The whole width.
    Wide,
    /// Beside other charts.
    Narrow,
}

/// A chart of lines with axes and a legend; `None` if there is nothing to draw.
pub(crate) fn lines(title: &str, x_name: &str, width: ChartWidth, lines: &[Line]) -> Option<String> {
    let wide = width == ChartWidth::Wide;
    let width = if wide { 760.0 } else { 420.0 };
    let all = || lines.iter().flat_map(|line| &line.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let (x_low, x_high) = span(all().map(|point| point.0))?;
    let (y_low, y_high) = span(all().map(|point| point.1))?;
    let ticks_y = ticks(y_low.min(0.0), y_high);
    let ticks_x = ticks(x_low, x_high);
    let (y_low, y_high) = (ticks_y[0], ticks_y[ticks_y.len() - 1]);
    let (x_low, x_high) = (x_low.min(ticks_x[0]), x_high.max(x_low + f64::EPSILON));
    let place_x = |x: f64| LEFT + (x - x_low) / (x_high - x_low) * (width - LEFT - RIGHT);
    let place_y = |y: f64| HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM);
    let class = if wide { "whole" } else { "part" };
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption><svg class=\"{class}\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" \
         aria-label=\"{}\">",
        escape(title),
        escape(title)
    );
    // Writing to a string cannot fail, here and below.
    for &tick in &ticks_y {
        let y = place_y(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            width - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            number(tick)
        );
    }
    for &tick in ticks_x.iter().filter(|&&tick| tick >= x_low && tick <= x_high) {
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            place_x(tick),
            HEIGHT - BOTTOM + 16.0,
            number(tick)
        );
    }
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + width - RIGHT) / 2.0,
        HEIGHT - 8.0,
        escape(x_name)
    );
    for (at, line) in lines.iter().enumerate() {
        let kept: Vec<&(f64, f64)> =
            line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let stride = kept.len().div_ceil(MOST_POINTS).max(1);
        let last = kept.len().saturating_sub(1);
        let chosen = kept.iter().enumerate().filter(|(place, _)| place % stride == 0 || *place == last);
        let points: Vec<String> =
            chosen.map(|(_, (x, y))| format!("{:.1},{:.1}", place_x(*x), place_y(*y))).collect();
        let _ = write!(svg, "<polyline class=\"line c{}\" points=\"{}\"/>", at % 6, points.join(" "));
        if let [only] = &points[..] {
            let (x, y) = only.split_once(',').unwrap_or_default();
            let _ = write!(svg, "<circle class=\"dot c{}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>", at % 6);
        }
    }
    svg.push_str("</svg>");
    if lines.len() > 1 {
        svg.push_str("<p class=\"legend\">");
        for (at, line) in lines.iter().enumerate() {
            let _ = write!(svg, "<span class=\"key c{}\">{}</span> ", at % 6, escape(&line.name));
        }
        svg.push_str("</p>");
    }
    svg.push_str("</figure>");
    Some(svg)
}

/// A number in its shortest form.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if size >= 10_000.0 => format!("{:.0}k", value / 1000.0),
        _ if size >= 100.0 || value == value.round() => format!("{value:.0}"),
        _ if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| match span {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// Round numbers from `low` or below to `high` or above, four to eight of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let width = if high > low { high - low } else { high.abs().max(1.0) };
    let rough = width / 5.0;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * magnitude).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).floor();
    let last = (high / step).ceil().max(first + 1.0);
    (0..=(last - first) as usize).map(|at| (first + at as f64) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover() {
        assert_eq!(ticks(0.0, 0.48), [0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5]);
        assert_eq!(ticks(0.0, 30.0), [0.0, 10.0, 20.0, 30.0]);
        for (low, high) in [(3.0, 3.0), (0.0, 0.0), (-2.0, 5.5), (1e6, 2e6)] {
            let ticks = ticks(low, high);
            assert!(ticks[0] <= low && ticks[ticks.len() - 1] >= high && ticks.len() < 12, "{ticks:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.5, 0.125, 3.0, 31.25, 12_000.0].map(number), ["0.5", "0.125", "3", "31.2", "12k"]);
    }

    #[test]
    fn a_chart_has_its_lines_and_nothing_has_none() {
        let line = |points: &[(f64, f64)]| Line { name: "a<b".to_owned(), points: points.to_vec() };
        let svg = lines(
            "MRR",
            "epoch",
            ChartWidth::Wide,
            &[line(&[(1.0, 0.2), (2.0, 0.4)]), line(&[(1.0, f64::NAN)])],
        )
        .unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
        assert_eq!(lines("nothing", "x", ChartWidth::Narrow, &[line(&[])]), None);
    }
}
