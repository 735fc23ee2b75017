//! Hyperparameter files (YAML, JSON, TOML) against the built-in catalogue, and catalogue files themselves: the first
//! byte says which.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rankscope_core::catalogue::advise::{Question, advise, named};
use rankscope_core::catalogue::document::{Format, parse};
use rankscope_core::catalogue::version::Version;
use rankscope_core::catalogue::{Catalogue, FrameRef, template};

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(Catalogue::built_in);

fn hyperparameters(text: &str, format: Format) {
    // A line ends at \n, \r\n or \r.
    let lines = text.matches(['\n', '\r']).count() + 1;
    let file = match parse(text, format) {
        Ok(file) => file,
        Err(error) => {
            assert!((1..=lines).contains(&error.at.line) && error.at.column >= 1 && !error.why.is_empty());
            return;
        }
    };
    let _ = named(&file, &BUILT_IN.trainers);
    let trainer = BUILT_IN.trainer("rfdetr").unwrap();
    for version in ["1.9.4", "1.11.2"] {
        let version = Version::parse(version).unwrap();
        let question = Question { trainer, version: &version, section: None, task: None };
        let Some((section, findings)) = advise(&file, &question) else { continue };
        for finding in &findings {
            assert!((1..=lines).contains(&finding.line) && finding.column >= 1 && !finding.what.is_empty());
            assert_eq!(finding.in_file, section.entries.iter().any(|entry| entry.key == finding.key));
        }
    }
}

fn catalogue(text: &str) {
    let mut catalogue = Catalogue::built_in();
    match catalogue.add("x", text) {
        Err(why) => assert!(why.starts_with('x')),
        Ok(()) => {
            let frames =
                [FrameRef { function: "A.b", file: "/x/a.py" }, FrameRef { function: text, file: text }];
            let _ = catalogue.remedies_for(&frames, Some(0.5));
            for trainer in &catalogue.trainers {
                if let Some(version) = &trainer.last {
                    let _ = template::yaml(trainer, version);
                }
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 3 {
        0 => hyperparameters(text, Format::Yaml),
        1 => hyperparameters(text, Format::Toml),
        _ => catalogue(text),
    }
});
