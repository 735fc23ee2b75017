//! The metrics that the training itself logged to its MLflow run.

use std::time::{Duration, Instant};

use rankscope_core::report::{Metric, Run};

use crate::mlflow::{self, Client, Settings};

/// Charts of one report.
const METRICS: usize = 24;
/// Without a server a report is complete but for these.
const PATIENCE: Duration = Duration::from_secs(20);

/// What could be learned of a run.
#[derive(Default)]
pub struct Training {
    pub run: Option<Run>,
    pub metrics: Vec<Metric>,
    /// What is not there, and why.
    pub remarks: Vec<String>,
}

/// From the server that a record was delivered to, or the one that is given.
pub fn of_run(server: &str, run_id: &str, tracking_uri: Option<&str>) -> Training {
    let unnamed = Run { id: run_id.to_owned(), ..Run::default() };
    let failed = |why: String| Training {
        run: Some(unnamed.clone()),
        remarks: vec![format!("the training's metrics are not here: {why}")],
        ..Training::default()
    };
    let settings = match Settings::from_env(tracking_uri).map_err(|e| e.to_string()) {
        Ok(Some(settings)) => Ok(Some(settings)),
        Ok(None) => Settings::from_env(Some(server)).map_err(|e| e.to_string()),
        Err(error) => Err(error),
    };
    let client = match settings {
        Ok(Some(settings)) => Client::new(&settings).map_err(|e| e.to_string()),
        Ok(None) => Err("no MLflow server is known".to_owned()),
        Err(error) => Err(error),
    };
    let mut client = match client {
        Ok(client) => client,
        Err(why) => return failed(why),
    };
    client.set_timeout(PATIENCE);
    match client.get_run(run_id) {
        Ok(run) => of_client(&mut client, &run, Instant::now() + PATIENCE),
        Err(error) => failed(error.to_string()),
    }
}

/// Requests end at `until`.
pub fn of_client(client: &mut Client, run: &mlflow::Run, until: Instant) -> Training {
    let url = Some(client.run_url(run));
    let mut found = Training {
        run: Some(Run { id: run.id.clone(), name: run.name.clone(), url }),
        ..Training::default()
    };
    let keys: Vec<&str> =
        run.metrics.iter().map(|m| m.key.as_str()).filter(|key| !key.starts_with("system/")).collect();
    if keys.len() > METRICS {
        let left_out = keys.len() - METRICS;
        found.remarks.push(format!("{left_out} of {} metrics of the training are not drawn", keys.len()));
    }
    for key in keys.into_iter().take(METRICS) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            found.remarks.push("not all metrics of the training came in time".to_owned());
            break;
        }
        client.set_timeout(left);
        match client.metric_history(&run.id, key) {
            Ok(points) => {
                let mut points: Vec<(i64, f64, i64)> =
                    points.into_iter().map(|p| (p.timestamp_ms, p.value, p.step)).collect();
                points.sort_by_key(|p| (p.0, p.2));
                found.metrics.push(Metric { name: key.to_owned(), points });
            }
            Err(error) => found.remarks.push(format!("{key}: {error}")),
        }
    }
    found.metrics.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
