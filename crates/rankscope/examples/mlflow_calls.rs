//! The MLflow client as a filter, for tests against a real server: one JSON array a line in (`["log_batch", …]`), one
//! answer a line out: `{"ok": …}` or `{"error": text, "transient": …}`. Reads MLflow's environment variables.

use std::io::{BufRead, Write};

use rankscope::mlflow::{
    Client, Error, Metric, NewRun, Page, Point, Run, RunStatus, RunsQuery, Settings, Tag, Upload, batches,
};
use serde_json::{Value, json};

fn main() {
    let settings = Settings::from_env(None).expect("settings").expect("MLFLOW_TRACKING_URI");
    let mut client = Client::new(&settings).expect("client");
    for line in std::io::stdin().lock().lines() {
        let call: Vec<Value> = serde_json::from_str(&line.expect("input")).expect("a JSON array");
        let answer = match answer(&mut client, &call) {
            Ok(value) => json!({ "ok": value }),
            Err(e) => {
                json!({ "error": e.to_string(), "debug": format!("{e:?}"), "transient": e.is_transient() })
            }
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).expect("output");
    }
}

fn answer(client: &mut Client, call: &[Value]) -> Result<Value, Error> {
    let text = |at: usize| call.get(at).and_then(Value::as_str).expect("a text").to_owned();
    Ok(match text(0).as_str() {
        "experiment_by_name" => {
            client.experiment_by_name(&text(1))?.map_or(Value::Null, |e| json!([e.id, e.deleted]))
        }
        "create_experiment" => client.create_experiment(&text(1))?.id.into(),
        "search_experiments" => {
            let Page { items, .. } = client.search_experiments("", None)?;
            items.into_iter().map(|e| e.name).collect::<Vec<_>>().into()
        }
        "create_run" => {
            let tags = tags(&call[3]);
            let start_time_ms = call[4].as_i64().expect("milliseconds");
            let new = NewRun { experiment_id: &text(1), name: Some(&text(2)), start_time_ms, tags: &tags };
            run(&client.create_run(&new)?)
        }
        "get_run" => run(&client.get_run(&text(1))?),
        "update_run" => {
            let status = match text(2).as_str() {
                "FAILED" => RunStatus::Failed,
                _ => RunStatus::Finished,
            };
            client.update_run(&text(1), status, call[3].as_i64())?.into()
        }
        "search_runs" => {
            let experiment_ids = vec![text(1)];
            let query = RunsQuery { experiment_ids, filter: text(2), max_results: 100, page_token: None };
            client.search_runs(&query)?.items.iter().map(run).collect::<Vec<_>>().into()
        }
        // Each metric as [key, value, timestamp, step].
        "log_batch" => {
            let metrics = call[2].as_array().expect("metrics").iter().map(metric).collect();
            let made = batches(metrics, tags(&call[3]));
            for batch in &made {
                client.log_batch(&text(1), batch)?;
            }
            made.len().into()
        }
        "set_tag" => client.set_tag(&text(1), &Tag::new(&text(2), &text(3)).expect("a tag"))?.into(),
        "metric_history" => {
            client.metric_history(&text(1), &text(2))?.iter().map(point).collect::<Vec<_>>().into()
        }
        "upload_artifact" => {
            let run = client.get_run(&text(1))?;
            match client.upload_artifact(&run, &text(2), text(3).as_bytes())? {
                Upload::Done => "done".into(),
                Upload::NoProxy(scheme) => scheme.into(),
            }
        }
        "delete_run" => client.delete_run(&text(1))?.into(),
        other => panic!("unknown call {other}"),
    })
}

fn metric(value: &Value) -> Metric {
    let number = |at: usize| value[at].as_i64().expect("an integer");
    let key = value[0].as_str().expect("a key");
    Metric::new(key, value[1].as_f64().expect("a number"), number(2), number(3)).expect("a sound metric")
}

fn tags(value: &Value) -> Vec<Tag> {
    let pairs = value.as_object().expect("tags").iter();
    pairs.map(|(key, value)| Tag::new(key, value.as_str().expect("a text")).expect("a sound tag")).collect()
}

fn point(point: &Point) -> Value {
    json!([point.value, point.timestamp_ms, point.step])
}

fn run(run: &Run) -> Value {
    json!({
        "id": run.id,
        "name": run.name,
        "status": run.status.as_str(),
        "start": run.start_time_ms,
        "end": run.end_time_ms,
        "deleted": run.deleted,
        "tags": run.tags.iter().map(|t| (t.key().to_owned(), t.value().into())).collect::<serde_json::Map<_, _>>(),
        "metrics": run.metrics.len(),
    })
}
