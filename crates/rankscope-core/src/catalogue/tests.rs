use super::*;

fn frames<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<FrameRef<'a>> {
    pairs.iter().map(|&(function, file)| FrameRef { function, file }).collect()
}

fn known(stack: &[(&str, &str)]) -> Vec<String> {
    Catalogue::built_in().traps_for(&frames(stack)).iter().map(|trap| trap.id.clone()).collect()
}

#[test]
fn every_built_in_file_is_read() {
    for (name, text) in BUILT_IN {
        Catalogue::default().add(name, text).unwrap();
    }
}

#[test]
fn a_metric_that_encodes_masks_is_known_and_what_does_not_help() {
    let stack = [
        ("_get_safe_item_values", "/venv/lib/python3.11/site-packages/torchmetrics/detection/helpers.py"),
        (
            "MeanAveragePrecision.update",
            "/venv/lib/python3.11/site-packages/torchmetrics/detection/mean_ap.py",
        ),
        ("main", "/app/train.py"),
    ];
    assert_eq!(known(&stack), ["torchmetrics_map_update"]);
    let remedies = Catalogue::built_in().remedies_for(&frames(&stack), Some(0.8));
    assert!(remedies[0].does_not_help.as_ref().unwrap().contains("faster_coco_eval"));
    assert!(remedies[0].changes_results.is_some());
    let gain = remedies[0].estimated_gain.as_ref().unwrap();
    assert!(gain.starts_with("about 72 % of the time (n = 10"), "{gain}");
    let unknown = Catalogue::built_in().remedies_for(&frames(&stack), None);
    assert!(unknown.iter().all(|remedy| remedy.estimated_gain.is_none()));
}

#[test]
fn a_function_of_the_same_name_elsewhere_is_not_known() {
    assert!(known(&[("update", "/app/mean_ap.py"), ("MeanAveragePrecision.update", "/app/x.py")]).is_empty());
    assert!(known(&[]).is_empty());
}

const OWN: &str = r#"
[[trap]]
id = "own"
library = "ours"
does = "parses each record"
[[trap.match]]
file = "ours/records.py"
functions = ["parse"]
under = { file = "torch/utils/data/_utils/fetch.py" }
[[trap.remedy]]
do = "parse once"
helps = "it does"
"#;

#[test]
fn an_entry_of_ones_own_is_added_and_needs_what_it_is_under() {
    let mut catalogue = Catalogue::built_in();
    catalogue.add("own.toml", OWN).unwrap();
    let alone = frames(&[("parse", "/x/ours/records.py")]);
    assert!(catalogue.traps_for(&alone).is_empty());
    let under = frames(&[("parse", "/x/ours/records.py"), ("fetch", "/y/torch/utils/data/_utils/fetch.py")]);
    assert_eq!(catalogue.traps_for(&under).len(), 1);
    let count = catalogue.traps.len();
    catalogue.add("again.toml", &OWN.replace("parse once", "don't")).unwrap();
    assert_eq!(catalogue.traps.len(), count, "the later entry takes the earlier one's place");
    assert_eq!(catalogue.remedies_for(&under, None)[0].action, "don't");
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let refused = |text: &str| Catalogue::default().add("x.toml", text).unwrap_err();
    assert!(refused(&OWN.replace("does =", "dose =")).starts_with("x.toml:"));
    assert!(refused("[[trap]]\nid = ").starts_with("x.toml:2: "));
    assert!(refused(&OWN.replace("ours/records.py", "*")).contains("every file"));
    assert!(refused(&"#".repeat(LONGEST + 1)).contains("longer"));
}
