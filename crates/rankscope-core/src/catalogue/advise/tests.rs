use super::*;
use crate::catalogue::Catalogue;
use crate::catalogue::document::{Format, parse};
use crate::catalogue::template;

/// `rule at line: key` of each finding.
fn found(text: &str, version: &str) -> Vec<String> {
    let catalogue = Catalogue::built_in();
    let trainer = catalogue.trainer("rfdetr").unwrap();
    let version = Version::parse(version).unwrap();
    let file = parse(text, Format::Yaml).unwrap();
    let question = Question { trainer, version: &version, section: None, task: None };
    let (_, findings) = advise(&file, &question).unwrap();
    findings.iter().map(|f| format!("{} {}: {}", f.rule, f.line, f.key)).collect()
}

/// A file that says all that is right on both versions, and then some.
fn with(lines: &str) -> String {
    format!("dataset_dir: d\neval_interval: 5\nlog_per_class_metrics: false\ngrad_accum_steps: 4\n{lines}\n")
}

#[test]
fn what_is_right_on_one_version_is_wrong_on_the_next() {
    let old = with("eval_ema_only: true");
    assert_eq!(found(&old, "1.9.4"), [""; 0]);
    assert_eq!(found(&old, "1.11.2"), ["eval_ema_only_deprecated 5: eval_ema_only"]);
    let new = with("eval_base_model: false");
    assert_eq!(found(&new, "1.9.4"), ["validates_two_models 1: eval_ema_only", "unknown 5: eval_base_model"]);
    assert_eq!(found(&new, "1.11.2"), [""; 0]);
    let explicit = with("eval_ema_only: false");
    assert_eq!(found(&explicit, "1.9.4"), ["validates_two_models 5: eval_ema_only"]);
    assert_eq!(found(&explicit, "1.11.2"), ["old_flag_brings_back_two_models 5: eval_ema_only"]);
    let both = with("eval_ema_only: true\neval_base_model: true");
    assert!(found(&both, "1.10.1").contains(&"ema_only_contradicts_base_model 5: eval_ema_only".to_owned()));
    let removed = with("eval_ema_only: true\nlr_drop: 50");
    assert_eq!(found(&removed, "1.9.4"), ["lr_drop_deprecated 6: lr_drop"]);
    assert!(found(&removed, "1.11.2").contains(&"unknown 6: lr_drop".to_owned()));
}

#[test]
fn defaults_count_where_the_file_is_silent() {
    let all = found("dataset_dir: d\n", "1.9.4");
    assert_eq!(
        all,
        [
            "per_class_metrics 1: log_per_class_metrics",
            "validates_every_epoch 1: eval_interval",
            "validates_two_models 1: eval_ema_only"
        ]
    );
    assert_eq!(
        found("dataset_dir: d\n", "1.11.2"),
        ["accumulation_not_said 1: grad_accum_steps", "validates_every_epoch 1: eval_interval"]
    );
    assert!(found("epochs: 3\n", "1.11.2").contains(&"missing 1: dataset_dir".to_owned()));
}

#[test]
fn types_ranges_and_slips() {
    let wrong = |line: &str| found(&with(line), "1.11.2");
    assert_eq!(wrong("epochs: many"), ["type 5: epochs"]);
    assert_eq!(wrong("batch_size: 0"), ["range 5: batch_size"]);
    assert_eq!(wrong("batch_size: auto"), [""; 0]);
    assert_eq!(wrong("batch_size: \"4\""), [""; 0], "pydantic takes it");
    assert_eq!(wrong("epochs: 1e2"), [""; 0]);
    assert_eq!(wrong("epochs: 1.5"), ["type 5: epochs"]);
    assert_eq!(wrong("epoch: 3"), ["unknown 5: epoch"]);
    assert_eq!(wrong("smooth_alpha: 1.0"), ["range 5: smooth_alpha"]);
    assert_eq!(wrong("auto_batch_ema_headroom: 0"), ["range 5: auto_batch_ema_headroom"]);
    assert_eq!(wrong("lr_scheduler: linear"), ["type 5: lr_scheduler"]);
    assert_eq!(wrong("lr_scheduler: torch.optim.lr_scheduler.StepLR"), [""; 0]);
    assert_eq!(wrong("multi_scale: per-sample"), [""; 0]);
    assert_eq!(wrong("output_dir: ${oc.env:HOME}/x"), [""; 0], "filled in later");
    assert_eq!(wrong("epochs: ${epochs}"), [""; 0]);
    assert_eq!(wrong("class_names: [a, 1]"), ["type 5: class_names"]);
    assert_eq!(
        wrong("num_workers: 0\nprefetch_factor: 2"),
        ["no_workers 5: num_workers", "prefetch_without_workers 6: prefetch_factor"]
    );
    assert_eq!(wrong("seed: 1\nseed: 2"), ["duplicate 5: seed"]);
    assert_eq!(found(&with("eval_ema_only: true\namp_dtype: fp8"), "1.9.4"), ["type 6: amp_dtype"]);
}

#[test]
fn very_many_keys_cost_their_number() {
    let many: String = (0..25_000).map(|n| format!("  a_rather_long_unknown_key_{n}: 1\n")).collect();
    let all = found(&format!("train:\n  epochs: 1\n{many}"), "1.11.2");
    assert_eq!(all.iter().filter(|finding| finding.starts_with("unknown")).count(), 25_000);
}

#[test]
fn the_keys_are_found_where_they_are() {
    let nested = "model: rfdetr-seg-nano\nplatform: {queue: x}\ntrain:\n  dataset_dir: d\n  eval_interval: 5\n  epoch: 3\n  grad_accum_steps: 1\n";
    assert_eq!(found(nested, "1.11.2"), ["unknown 6: epoch"]);
    let flat = "model: RFDETRBase\nnum_classes: 3\ndataset_dir: d\neval_interval: 2\ngrad_accum_steps: 1\nepoch: 1\n";
    assert_eq!(found(flat, "1.11.2"), ["unknown 6: epoch"]);
    let foreign = "queue: x\nowner: y\nimage: z\nepochs: 1\n";
    assert!(
        !found(foreign, "1.11.2").iter().any(|finding| finding.starts_with("unknown")),
        "not the trainer's own"
    );
    let lightning = "model:\n  class_path: rfdetr.RFDETRModelModule\n  train_config:\n    epochs: x\n";
    assert!(found(lightning, "1.11.2").contains(&"type 4: epochs".to_owned()));
}

#[test]
fn a_rule_of_a_task_needs_the_task() {
    let seg = |line: &str| found(&with(line), "1.9.4").iter().any(|f| f.starts_with("newer_evaluates"));
    assert!(!seg("eval_ema_only: true"));
    assert!(seg("mask_ce_loss_coef: 5"));
    assert!(seg("model_name: RFDETRSegNano"));
}

#[test]
fn the_template_of_each_version_is_one_that_advice_finds_nothing_in() {
    let catalogue = Catalogue::built_in();
    let trainer = catalogue.trainer("rfdetr").unwrap();
    for text in ["1.9.0", "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.2"] {
        let yaml = template::yaml(trainer, &Version::parse(text).unwrap());
        assert_eq!(found(&yaml, text), [""; 0], "{text}");
        // And so is every default that stands in it as a comment, but those that the catalogue advises against.
        let lines = yaml.lines().map(|line| default_of(line, trainer).unwrap_or(line));
        let all = lines.collect::<Vec<_>>().join("\n");
        let of_itself = ["type", "range", "unknown", "duplicate"];
        let wrong: Vec<String> = found(&all, text)
            .into_iter()
            .filter(|f| of_itself.iter().any(|rule| f.starts_with(rule)))
            .collect();
        assert_eq!(wrong, [""; 0], "{text}");
    }
}

/// A default that stands in a comment.
fn default_of<'a>(line: &'a str, trainer: &Trainer) -> Option<&'a str> {
    line.strip_prefix("# ")
        .filter(|line| line.split_once(": ").is_some_and(|(key, _)| trainer.other_key(key).is_some()))
}

const OURS: &str = r#"
[[trainer]]
id = "rfdetr"
extends = true
only = ["dataset_dir", "epochs", "eval_interval", "grad_accum_steps", "log_per_class_metrics", "queue"]
only_why = "the platform sets the rest"
[[trainer.key]]
name = "queue"
also = ["short", "long"]
[[trainer.rule]]
id = "long_runs"
severity = "error"
when = [{ key = "epochs", above = 50 }, { key = "queue", is_not = "long" }]
at = "queue"
what = "must be long for more than 50 epochs"
why = "the short queue ends after a day"
"#;

#[test]
fn a_platform_adds_its_whitelist_keys_and_rules() {
    let mut catalogue = Catalogue::built_in();
    catalogue.add("ours.toml", OURS).unwrap();
    let trainer = catalogue.trainer("rfdetr").unwrap();
    let version = Version::parse("1.11.2").unwrap();
    let file = parse(&with("lr: 1\nqueue: short\nepochs: 60"), Format::Yaml).unwrap();
    let question = Question { trainer, version: &version, section: None, task: None };
    let (_, findings) = advise(&file, &question).unwrap();
    let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, ["not_allowed", "long_runs"]);
    assert_eq!(findings[0].why.as_deref(), Some("the platform sets the rest"));
    let template = template::yaml(trainer, &version);
    assert!(template.contains("queue:") && !template.contains("weight_decay"));
}

#[test]
fn a_catalogue_that_contradicts_itself_is_refused() {
    let refused = |text: &str| Catalogue::built_in().add("x.toml", text).unwrap_err();
    assert!(refused(&OURS.replace("\"queue\", is_not", "\"quue\", is_not")).contains("no key `quue`"));
    assert!(refused(&OURS.replace("id = \"rfdetr\"", "id = \"other\"")).contains("none to extend"));
    assert!(refused("[[trainer]]\nid = \"a\"\n").contains("first"));
    assert!(refused("[[trainer]]\nid = \"a\"\nfirst = \"1\"\nlast = \"2\"\n[[trainer.key]]\nname = \"k\"\ntype = \"real\"\n").starts_with("x.toml:7"));
}
