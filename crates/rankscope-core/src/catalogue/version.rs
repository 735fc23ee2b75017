//! Versions of Python packages, as far as rules need to compare them (PEP 440), and what a rule asks of one.

use std::cmp::Ordering;
use std::fmt;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Version {
    text: String,
    /// Without zeros at the end.
    release: Vec<u64>,
    /// -1: before the release (`a1`, `rc1`, `.dev1`), 1: after it (`.post1`).
    stage: i8,
}

impl Version {
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let plain = text.split('+').next()?.trim_start_matches('v');
        let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
        let (numbers, rest) = plain.split_at(end);
        let word = rest.trim_start_matches(['-', '_']).split(|c: char| c.is_ascii_digit()).next()?;
        let stage = match word {
            "" => i8::from(!rest.is_empty()),
            "post" | "rev" | "r" => 1,
            "a" | "b" | "c" | "rc" | "dev" | "alpha" | "beta" | "pre" => -1,
            _ => return None,
        };
        let numbers = numbers.strip_suffix('.').filter(|_| !rest.is_empty()).unwrap_or(numbers);
        let mut release: Vec<u64> =
            numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        while release.last() == Some(&0) {
            release.pop();
        }
        Some(Version { text: text.to_owned(), release, stage })
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        Version::parse(&text).ok_or_else(|| format!("`{text}` is no version"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        self.release.cmp(&other.release).then(self.stage.cmp(&other.stage))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

/// `>=1.10, <1.12`; empty: every version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Versions {
    text: String,
    bounds: Vec<(Bound, Version)>,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast,
    Above,
    AtMost,
    Below,
    Is,
}

const BOUNDS: [(&str, Bound); 5] = [
    (">=", Bound::AtLeast),
    ("<=", Bound::AtMost),
    ("==", Bound::Is),
    (">", Bound::Above),
    ("<", Bound::Below),
];

impl Versions {
    pub fn hold(&self, version: &Version) -> bool {
        self.bounds.iter().all(|(bound, other)| match bound {
            Bound::AtLeast => version >= other,
            Bound::Above => version > other,
            Bound::AtMost => version <= other,
            Bound::Below => version < other,
            Bound::Is => version == other,
        })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Versions {
    type Error = String;

    fn try_from(text: String) -> Result<Versions, String> {
        let bound = |part: &str| {
            let (word, bound) = BOUNDS.iter().find(|(word, _)| part.starts_with(word))?;
            Some((*bound, Version::parse(&part[word.len()..])?))
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let bounds = parts.map(|part| bound(part).ok_or_else(|| format!("`{part}` is no bound of versions")));
        Ok(Versions { bounds: bounds.collect::<Result<_, _>>()?, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let rising =
            ["1.9.0rc1", "1.9", "1.9.4", "1.10.0.dev3", "1.10.0", "1.10.0.post1", "1.10.1", "1.11", "2"];
        assert!(rising.windows(2).all(|pair| version(pair[0]) < version(pair[1])));
        assert_eq!(version("1.9"), version("v1.9.0+cu132"));
        assert!(
            ["", "x", "1..2", "1.9banana", "1.99999999999999999999999"]
                .iter()
                .all(|t| Version::parse(t).is_none())
        );
    }

    #[test]
    fn bounds_hold_together() {
        let bounds = |text: &str| Versions::try_from(text.to_owned());
        let middle = bounds(">=1.10, <1.11").unwrap();
        assert!(
            middle.hold(&version("1.10.1"))
                && !middle.hold(&version("1.11"))
                && !middle.hold(&version("1.9"))
        );
        assert!(bounds("").unwrap().hold(&version("0")) && bounds("==1.9").unwrap().hold(&version("1.9.0")));
        assert!(bounds("1.9").is_err() && bounds(">= x").is_err());
    }
}
