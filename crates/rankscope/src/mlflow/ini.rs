//! `~/.mlflow/credentials` and `~/.databrickscfg`: `[section]`, `key = value`, comments.

/// The value of `key` in `[section]`. Keys are compared without case, as Python's configparser does.
pub fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            inside = name.trim() == section;
        } else if inside && !line.starts_with(['#', ';']) {
            let pair = line.split_once(['=', ':']);
            if let Some((_, value)) = pair.filter(|(name, _)| name.trim().eq_ignore_ascii_case(key)) {
                found = Some(value.trim().to_owned()).filter(|v| !v.is_empty());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn sections_comments_and_case() {
        let text = "[other]\nmlflow_tracking_username=x\n[mlflow]\n# c\nMLFLOW_tracking_username = ann\nempty =\nmlflow_tracking_password=a=b:c\n";
        assert_eq!(value(text, "mlflow", "mlflow_tracking_username").as_deref(), Some("ann"));
        assert_eq!(value(text, "mlflow", "mlflow_tracking_password").as_deref(), Some("a=b:c"));
        assert_eq!(value(text, "mlflow", "empty"), None);
        assert_eq!(value(text, "DEFAULT", "host"), None);
    }
}
