//! Numbers in sentences.

use super::implied::Implied;

/// `540,576`
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value <= -0.5 { "-" } else { "" });
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes: `64 GiB` if it is a round number of them, else megabytes.
pub fn size(bytes: f64) -> String {
    let gib = bytes / 1_073_741_824.0;
    match gib >= 1.0 && (gib * 4.0).fract() == 0.0 {
        true => format!("{gib} GiB"),
        false => format!("{} MB", grouped(bytes / 1e6)),
    }
}

/// Cores, or any small number, with at most two decimals.
pub fn short(value: f64) -> String {
    let text = if value >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `540,576 MB`, or the interval where it is wider than a thousandth.
pub fn total(implied: &Implied) -> String {
    match implied.range {
        Some((low, high)) if implied.width().is_some_and(|w| w <= 0.001) => {
            format!("{} MB", grouped((low + high) / 2.0))
        }
        Some((low, high)) => format!("{} to {} MB", grouped(low), grouped(high)),
        None => format!("about {} MB", grouped(implied.median)),
    }
}

/// How the total was found, for people.
pub fn derivation(implied: &Implied) -> String {
    let spread = format!(
        "point by point {} MB in the middle, {} to {} MB from the 5th to the 95th percentile",
        grouped(implied.median),
        grouped(implied.p05),
        grouped(implied.p95)
    );
    let points = implied.points;
    match (implied.range, implied.width()) {
        (Some((low, high)), Some(width)) => format!(
            "total {low:.1} to {high:.1} MB ({:.2} % wide) from {points} points; {spread}",
            width * 100.0
        ),
        _ => format!(
            "no single total fits all {points} points: it changed, or several writers share these keys; {spread}"
        ),
    }
}

/// A percentage with one decimal, as MLflow rounds it.
pub fn short_share(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
