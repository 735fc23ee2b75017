//! What an option's text may be.

use std::ops::RangeInclusive;
use std::time::Duration;

use rankscope_core::parse::quantity;

use super::Placed;
use crate::sources::MountOption;

pub(super) fn bytes(text: &str) -> Result<f64, String> {
    quantity::bytes(text).ok_or_else(|| "expected a size such as 64GiB, 64Gi or 68719476736".to_owned())
}

pub(super) fn cores(text: &str) -> Result<f64, String> {
    quantity::cores(text).ok_or_else(|| "expected a number of CPUs such as 8, 0.5 or 500m".to_owned())
}

fn seconds(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let value: f64 = text.trim().parse().map_err(|_| "not a number of seconds".to_owned())?;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("must lie between {} and {} seconds", range.start(), range.end()))
    }
}

/// `90`, `90s`, `30m`, `2h`, `1d`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(letter, seconds)| Some((text.strip_suffix(letter)?, seconds)))
        .unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| "expected a time such as 90, 30m or 2h".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| "not a time".to_owned())
}

pub(super) fn interval(text: &str) -> Result<f64, String> {
    seconds(text, 0.01..=60.0)
}

pub(super) fn window(text: &str) -> Result<f64, String> {
    seconds(text, 0.1..=3600.0)
}

pub(super) fn duration(text: &str) -> Result<f64, String> {
    seconds(text, 1.0..=86_400.0)
}

pub(super) fn grace(text: &str) -> Result<f64, String> {
    seconds(text, 0.0..=3600.0)
}

pub(super) fn placement(text: &str) -> Result<Placed, String> {
    serde_json::from_str(text).map(Placed).map_err(|_| "expected {\"<rank>\": \"<node>\", …}".to_owned())
}

pub(super) fn mount(text: &str) -> Result<MountOption, String> {
    let (label, path) = text.split_once('=').ok_or("expected LABEL=PATH")?;
    let safe = !label.is_empty()
        && label.len() <= 40
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !safe {
        return Err(format!("label `{label}`: letters, digits, _ and - only, at most 40"));
    }
    if !path.starts_with('/') {
        return Err(format!("`{path}` is not an absolute path"));
    }
    Ok(MountOption { label: label.to_owned(), path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(time("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert!(["", "m", "-1", "1w", "nan", "1e300h"].iter().all(|text| time(text).is_err()));
        assert!(interval("0.01").is_ok() && interval("0.001").is_err() && interval("nan").is_err());
        assert!(
            mount("data=/mnt").is_ok()
                && mount("=/mnt").is_err()
                && mount("a b=/x").is_err()
                && mount("a=x").is_err()
        );
    }
}
