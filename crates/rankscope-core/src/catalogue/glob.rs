//! Patterns over names of functions and files: `*` is any text.

/// A path has at most so many parts at its end that are looked at: what a pattern names is near the file.
const PARTS: usize = 16;

pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut pos) = (0, 0);
    // Where the last star was, and how far its text reaches: the only place to come back to.
    let mut star: Option<(usize, usize)> = None;
    while pos < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, pos));
                at += 1;
            }
            Some(byte) if *byte == text[pos] => (at, pos) = (at + 1, pos + 1),
            _ => match star {
                Some((back, reached)) => {
                    star = Some((back, reached + 1));
                    (at, pos) = (back + 1, reached + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// `torch/serialization.py` is the end of the path, at the start of one of its parts.
pub fn ends_path(pattern: &str, path: &str) -> bool {
    let starts = path.rmatch_indices('/').take(PARTS).map(|(at, _)| &path[at + 1..]);
    matches(pattern, path) || starts.into_iter().any(|end| matches(pattern, end))
}

/// A qualified name, or from Pythons before 3.11, which have none, its last part.
pub fn is_function(pattern: &str, name: &str) -> bool {
    let last = pattern.rsplit('.').next().unwrap_or(pattern);
    matches(pattern, name) || (!name.contains('.') && matches(last, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        assert!(matches("a*c", "abbc") && matches("*", "") && matches("a*", "a") && matches("*b*", "abc"));
        assert!(!matches("a*c", "abb") && !matches("", "a") && !matches("a", "") && !matches("a*b*c", "acb"));
    }

    #[test]
    fn a_path_is_known_by_its_end() {
        let path = "/usr/lib/python3.11/site-packages/torch/serialization.py";
        assert!(ends_path("torch/serialization.py", path));
        assert!(!ends_path("orch/serialization.py", path), "parts are whole");
        assert!(ends_path("torch/_inductor/*", "/x/torch/_inductor/codegen/cpp.py"));
        assert!(ends_path("torch/serialization.py", "torch/serialization.py"));
    }

    #[test]
    fn a_hostile_path_costs_its_length() {
        let path = "/".repeat(1 << 16);
        assert!(!ends_path("torch/*/*/*/x.py", &path));
    }

    #[test]
    fn old_pythons_give_the_last_part_of_a_name() {
        assert!(is_function("MeanAveragePrecision.update", "MeanAveragePrecision.update"));
        assert!(is_function("MeanAveragePrecision.update", "update"));
        assert!(!is_function("MeanAveragePrecision.update", "Other.update"));
    }
}
