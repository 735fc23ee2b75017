//! The calls of MLflow's REST API that rankscope makes.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::address::encode;
use super::batch::{Batch, MAX_METRICS};
use super::error::Error;
use super::http::{Call, Http};
use super::settings::Settings;
use super::types::{Experiment, Page, Point, Run, RunStatus, Tag, wire};

const API: &str = "/api/2.0/mlflow/";
/// Points in one answer.
const HISTORY_PAGE: u32 = 25_000;

/// At most one request is in flight: every call takes `&mut self`.
pub struct Client {
    pub(super) http: Http,
    /// Items that this server takes at once, as far as its answers have told.
    pub(super) largest_batch: usize,
}

#[derive(Serialize)]
pub struct NewRun<'a> {
    pub experiment_id: &'a str,
    #[serde(rename = "run_name", skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    #[serde(rename = "start_time")]
    pub start_time_ms: i64,
    pub tags: &'a [Tag],
}

/// `filter` in MLflow's language: ``tags.`rankscope.job` = 'x'``.
#[derive(Clone, Debug, Serialize)]
pub struct RunsQuery {
    /// The server wants at least one.
    pub experiment_ids: Vec<String>,
    pub filter: String,
    pub max_results: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// Which part of a series.
#[derive(Clone, Debug)]
pub struct HistoryQuery<'a> {
    pub run_id: &'a str,
    pub key: &'a str,
    pub max_results: u32,
    pub page_token: Option<String>,
}

impl Client {
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Ok(Self { http: Http::new(settings)?, largest_batch: MAX_METRICS })
    }

    /// Address of the server, without user information.
    pub fn server(&self) -> String {
        self.http.server().to_string()
    }

    /// Where a browser shows the run.
    pub fn run_url(&self, run: &Run) -> String {
        format!("{}/#/experiments/{}/runs/{}", self.http.server(), run.experiment_id, run.id)
    }

    /// For one whole request, from now on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.http.set_timeout(timeout);
    }

    /// `None`: there is no such experiment. One that was deleted is returned with `deleted`.
    pub fn experiment_by_name(&mut self, name: &str) -> Result<Option<Experiment>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            experiment: Experiment,
        }
        match self.get::<Answer>(format!("experiments/get-by-name?experiment_name={}", encode(name))) {
            Ok(answer) => Ok(Some(answer.experiment)),
            Err(error) if error.code() == Some("RESOURCE_DOES_NOT_EXIST") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The new experiment, or the one that has the name already (perhaps `deleted`: then it takes no runs).
    pub fn create_experiment(&mut self, name: &str) -> Result<Experiment, Error> {
        #[derive(Deserialize)]
        struct Answer {
            experiment_id: String,
        }
        match self.post::<Answer>("experiments/create", &json!({ "name": name }), true) {
            Ok(Answer { experiment_id }) => Ok(Experiment {
                id: experiment_id,
                name: name.to_owned(),
                artifact_location: String::new(),
                deleted: false,
            }),
            Err(error) if error.code() == Some("RESOURCE_ALREADY_EXISTS") => {
                self.experiment_by_name(name)?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    pub fn search_experiments(
        &mut self,
        filter: &str,
        page_token: Option<&str>,
    ) -> Result<Page<Experiment>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            experiments: Vec<Experiment>,
            next_page_token: Option<String>,
        }
        let mut body = json!({ "max_results": 1000, "view_type": "ACTIVE_ONLY" });
        if !filter.is_empty() {
            body["filter"] = filter.into();
        }
        if let Some(token) = page_token {
            body["page_token"] = token.into();
        }
        let answer: Answer = self.post("experiments/search", &body, true)?;
        Ok(Page { items: answer.experiments, next: next(answer.next_page_token) })
    }

    /// Not repeatable: after a lost answer search for a tag before trying again.
    pub fn create_run(&mut self, run: &NewRun) -> Result<Run, Error> {
        self.post::<OneRun>("runs/create", run, false).map(|a| a.run.into())
    }

    pub fn get_run(&mut self, run_id: &str) -> Result<Run, Error> {
        self.get::<OneRun>(format!("runs/get?run_id={}", encode(run_id))).map(|a| a.run.into())
    }

    /// The server ignores a status that it doesn't know, so `Other` is sent as no status.
    pub fn update_run(
        &mut self,
        run_id: &str,
        status: RunStatus,
        end_time_ms: Option<i64>,
    ) -> Result<(), Error> {
        let mut body = json!({ "run_id": run_id });
        if status != RunStatus::Other {
            body["status"] = status.as_str().into();
        }
        if let Some(end) = end_time_ms {
            body["end_time"] = end.into();
        }
        self.post::<Nothing>("runs/update", &body, true).map(drop)
    }

    pub fn search_runs(&mut self, query: &RunsQuery) -> Result<Page<Run>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            runs: Vec<wire::Run>,
            next_page_token: Option<String>,
        }
        let answer: Answer = self.post("runs/search", query, true)?;
        Ok(Page {
            items: answer.runs.into_iter().map(Run::from).collect(),
            next: next(answer.next_page_token),
        })
    }

    /// All or nothing.
    pub(super) fn log_once(&mut self, run_id: &str, batch: &Batch) -> Result<(), Error> {
        self.post_bytes::<Nothing>("runs/log-batch", &batch.body(run_id), true).map(drop)
    }

    pub fn set_tag(&mut self, run_id: &str, tag: &Tag) -> Result<(), Error> {
        let body = json!({ "run_id": run_id, "key": tag.key(), "value": tag.value() });
        self.post::<Nothing>("runs/set-tag", &body, true).map(drop)
    }

    /// Also well when there is no such tag.
    pub fn delete_tag(&mut self, run_id: &str, key: &str) -> Result<(), Error> {
        match self.post::<Nothing>("runs/delete-tag", &json!({ "run_id": run_id, "key": key }), true) {
            Err(error) if error.code() != Some("RESOURCE_DOES_NOT_EXIST") => Err(error),
            _ => Ok(()),
        }
    }

    /// Every point of a series, as the server orders them. Empty for a missing key, and for a missing run.
    pub fn metric_history(&mut self, run_id: &str, key: &str) -> Result<Vec<Point>, Error> {
        let mut query = HistoryQuery { run_id, key, max_results: HISTORY_PAGE, page_token: None };
        let mut points = Vec::new();
        loop {
            let page = self.metric_history_page(&query)?;
            points.extend(page.items);
            if page.next.is_none() {
                return Ok(points);
            }
            query.page_token = page.next;
        }
    }

    /// Servers up to MLflow 2.x give everything at once, whatever `max_results` is.
    pub fn metric_history_page(&mut self, query: &HistoryQuery) -> Result<Page<Point>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            metrics: Vec<wire::Metric>,
            next_page_token: Option<String>,
        }
        let (run, key) = (encode(query.run_id), encode(query.key));
        let mut path =
            format!("metrics/get-history?run_id={run}&metric_key={key}&max_results={}", query.max_results);
        if let Some(token) = &query.page_token {
            path.push_str(&format!("&page_token={}", encode(token)));
        }
        let answer: Answer = self.get(path)?;
        // A server that repeats its token would never end.
        let goes_on = |new: &String| query.page_token.as_ref() != Some(new) && !answer.metrics.is_empty();
        Ok(Page {
            items: answer.metrics.iter().map(wire::Metric::point).collect(),
            next: next(answer.next_page_token).filter(goes_on),
        })
    }

    pub fn delete_run(&mut self, run_id: &str) -> Result<(), Error> {
        self.post::<Nothing>("runs/delete", &json!({ "run_id": run_id }), false).map(drop)
    }

    pub(super) fn get<T: DeserializeOwned>(&mut self, path: String) -> Result<T, Error> {
        let call = Call {
            method: "GET",
            path: format!("{API}{path}"),
            body: None,
            content_type: "",
            repeatable: true,
        };
        self.call(&call)
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
        repeatable: bool,
    ) -> Result<T, Error> {
        // Texts and integers only: nothing here can fail to serialise.
        self.post_bytes(path, &serde_json::to_vec(body).unwrap_or_default(), repeatable)
    }

    fn post_bytes<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &[u8],
        repeatable: bool,
    ) -> Result<T, Error> {
        let path = format!("{API}{path}");
        self.call(&Call {
            method: "POST",
            path,
            body: Some(body),
            content_type: "application/json",
            repeatable,
        })
    }

    fn call<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, Error> {
        let body = self.http.send(call)?;
        serde_json::from_slice(&body).map_err(|error| {
            if error.is_eof() {
                return self.http.cut_short(call);
            }
            let start = String::from_utf8_lossy(&body[..body.len().min(120)]).into_owned();
            self.http.unexpected(call, &format!("{error}; it begins with `{start}`"))
        })
    }
}

#[derive(Deserialize)]
struct OneRun {
    run: wire::Run,
}

/// An answer that says only that it went well. It has to be an object all the same.
type Nothing = serde_json::Map<String, serde_json::Value>;

fn next(token: Option<String>) -> Option<String> {
    token.filter(|t| !t.is_empty())
}
