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

/// A stack, leaf first, and the traps that know it.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

const EVALUATION: &str = "/s/pytorch_lightning/loops/evaluation_loop.py";

#[test]
fn every_trap_is_known_by_the_stack_it_was_written_for() {
    let fetch = ("_MapDatasetFetcher.fetch", "/s/torch/utils/data/_utils/fetch.py");
    let worker = ("_worker_loop", "/s/torch/utils/data/_utils/worker.py");
    let single = ("_SingleProcessDataLoaderIter._next_data", "/s/torch/utils/data/dataloader.py");
    let many = ("_MultiProcessingDataLoaderIter.__init__", "/s/torch/utils/data/dataloader.py");
    let start = ("BaseProcess.start", "/usr/lib/python3.11/multiprocessing/process.py");
    let bootstrap = ("BaseProcess._bootstrap", "/usr/lib/python3.11/multiprocessing/process.py");
    let stacks: &[Case] = &[
        (&[("MeanAveragePrecision.compute", "/s/torchmetrics/detection/mean_ap.py")], &["coco_map_compute"]),
        (&[("COCOeval.evaluateImg", "/s/pycocotools/cocoeval.py")], &["coco_map_compute"]),
        (
            &[("COCOEvalCallback.on_validation_batch_end", "/s/rfdetr/training/callbacks/coco_eval.py")],
            &["rfdetr_validation"],
        ),
        (&[("_EvaluationLoop.run", EVALUATION)], &["lightning_validation"]),
        (&[("Trainer.evaluate", "/s/transformers/trainer.py")], &["transformers_evaluation"]),
        (&[("_save", "/s/torch/serialization.py"), ("save", "/s/torch/serialization.py")], &["torch_save"]),
        (&[fetch, single], &["loader_in_training_process"]),
        (&[fetch, worker], &[]),
        (&[start, many], &["loader_starts_workers"]),
        (&[many], &[]),
        (&[fetch, worker, bootstrap, start, many, ("_EvaluationLoop.run", EVALUATION)], &[]),
        (
            &[("ImageFile.load", "/s/PIL/ImageFile.py"), fetch, worker, bootstrap, start, many],
            &["pillow_decode"],
        ),
        (&[("ImageFile.load", "/s/PIL/ImageFile.py"), fetch, worker], &["pillow_decode"]),
        (
            &[("PreTrainedTokenizerFast._batch_encode_plus", "/s/transformers/tokenization_utils_fast.py")],
            &["tokenizer_in_training"],
        ),
        (&[("_compile", "/s/torch/_dynamo/convert_frame.py")], &["torch_compile"]),
        (&[("compile", "/s/triton/compiler/compiler.py")], &["torch_compile"]),
        (&[("_jit_compile", "/s/torch/utils/cpp_extension.py")], &["torch_extension_build"]),
        (&[("0x7f00", "/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.1")], &["cuda_ptx_jit"]),
        (
            &[("at::native::_local_scalar_dense_cuda(at::Tensor const&)", "/s/torch/lib/libtorch_cuda.so")],
            &["item_each_step"],
        ),
        (&[("synchronize", "/s/torch/cuda/__init__.py")], &["item_each_step"]),
        (&[("read_csv", "/s/pandas/io/parsers/readers.py"), fetch, worker], &["csv_per_item"]),
        (&[("read_csv", "/s/pandas/io/parsers/readers.py")], &[]),
        (&[("JSONDecoder.decode", "/usr/lib/python3.11/json/decoder.py"), fetch], &["json_per_item"]),
        (&[("MlflowClient.log_metric", "/s/mlflow/tracking/client.py")], &["mlflow_synchronous"]),
        (&[("Figure.savefig", "/s/matplotlib/figure.py")], &["matplotlib_savefig"]),
        (&[("<module>", "/app/train.py"), ("save", "/app/serialization.py")], &[]),
    ];
    for (stack, ids) in stacks {
        assert_eq!(known(stack), *ids, "{stack:?}");
    }
    let tried = stacks.iter().flat_map(|(_, ids)| *ids).chain(&["torchmetrics_map_update"]);
    let tried: std::collections::HashSet<&str> = tried.copied().collect();
    assert_eq!(tried.len(), Catalogue::built_in().traps.len(), "a trap has no stack here");
}

#[test]
fn before_python_3_11_a_method_is_known_without_its_class() {
    let fetch = ("fetch", "/s/torch/utils/data/_utils/fetch.py");
    let next = ("_next_data", "/s/torch/utils/data/dataloader.py");
    assert_eq!(known(&[fetch, next]), ["loader_in_training_process"]);
    assert!(known(&[fetch, ("_worker_loop", "/s/torch/utils/data/_utils/worker.py")]).is_empty());
    let start = ("start", "/usr/lib/python3.10/multiprocessing/process.py");
    assert_eq!(known(&[start, ("__init__", "/s/torch/utils/data/dataloader.py")]), ["loader_starts_workers"]);
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
