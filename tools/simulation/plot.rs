//! A line plot as SVG.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 44.0;

/// `values` over 0, 1, 2, ...
pub(crate) fn svg(title: &str, x: &str, y: &str, values: &[f64]) -> String {
    let top = values.iter().copied().fold(1.0, f64::max);
    let last = values.len().saturating_sub(1).max(1) as f64;
    let at = |(i, v): (usize, &f64)| {
        let (px, py) = (
            MARGIN + i as f64 / last * (WIDTH - 2.0 * MARGIN),
            HEIGHT - MARGIN - v / top * (HEIGHT - 2.0 * MARGIN),
        );
        format!("{px:.1},{py:.1}")
    };
    let points: Vec<String> = values.iter().enumerate().map(at).collect();
    let (right, bottom) = (WIDTH - MARGIN, HEIGHT - MARGIN);
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"##
    );
    let _ = write!(
        out,
        r##"<rect width="100%" height="100%" fill="#fff"/><text x="{MARGIN}" y="24" font-size="14">{title}</text>"##
    );
    let _ = write!(out, r##"<path d="M{MARGIN},{MARGIN}V{bottom}H{right}" fill="none" stroke="#888"/>"##);
    let _ = write!(out, r##"<text x="8" y="{MARGIN}">{top:.0}</text><text x="8" y="{bottom}">0</text>"##);
    let _ =
        write!(out, r##"<text x="{right}" y="{}" text-anchor="end">{last:.0} {x}</text>"##, bottom + 18.0);
    let _ = write!(out, r##"<text x="{MARGIN}" y="{}">{y}</text>"##, bottom + 18.0);
    let _ = write!(
        out,
        r##"<polyline points="{}" fill="none" stroke="#06c" stroke-width="2"/></svg>"##,
        points.join(" ")
    );
    out.push('\n');
    out
}
