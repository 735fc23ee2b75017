//! Profiles in speedscope's file format (https://www.speedscope.app): drop the file there, it is read in the browser.

use serde::Serialize;

use super::observations::Stacks;
use super::profile::Profile;

/// Serialise it as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Debug, Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Debug, Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    samples: Vec<&'a [u32]>,
    weights: Vec<f64>,
}

pub fn file<'a>(name: &'a str, stacks: &'a Stacks, profiles: &'a [Profile]) -> File<'a> {
    let frame = |frame: &'a super::observations::Frame| Frame {
        name: &frame.function,
        file: &frame.file,
        line: Some(frame.line).filter(|line| *line > 0),
    };
    let sampled = |profile: &'a Profile| Sampled {
        kind: "sampled",
        name: &profile.name,
        unit: "seconds",
        start_value: 0.0,
        end_value: profile.seconds(),
        samples: profile.entries.iter().map(|entry| entry.frames.as_slice()).collect(),
        weights: profile.entries.iter().map(|entry| entry.seconds).collect(),
    };
    File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("rankscope {}", env!("CARGO_PKG_VERSION")),
        name,
        active_profile_index: 0,
        shared: Shared { frames: stacks.frames.iter().map(frame).collect() },
        profiles: profiles.iter().map(sampled).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::{profiles, stacks};
    use super::*;

    #[test]
    fn as_speedscope_reads_it() {
        let (stacks, profiles) = (stacks(), profiles());
        let json = serde_json::to_value(file("job", &stacks, &profiles)).expect("JSON");
        assert_eq!(json["shared"]["frames"][1]["name"], "load");
        assert_eq!(json["shared"]["frames"][1]["line"], 2);
        assert!(json["shared"]["frames"][3].get("line").is_none());
        let idle = &json["profiles"][0];
        assert_eq!((&idle["type"], &idle["unit"]), (&"sampled".into(), &"seconds".into()));
        assert_eq!(idle["samples"][0], serde_json::json!([0, 1]));
        assert_eq!(idle["samples"].as_array().map(Vec::len), idle["weights"].as_array().map(Vec::len));
        assert_eq!(idle["endValue"], 0.8);
    }
}
