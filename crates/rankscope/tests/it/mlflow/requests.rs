//! What is sent, and what is made of documented answers.

use rankscope::mlflow::{Batch, Metric, NewRun, Point, RunStatus, RunsQuery, Tag, Upload};

use super::client;
use super::stand_in::{StandIn, json, status};

const RUN: &str = r#"{"run":{"info":{"run_uuid":"r1","run_id":"r1","experiment_id":"1","run_name":"n","user_id":"","status":"RUNNING","start_time":1700000000000,"artifact_uri":"mlflow-artifacts:/1/r1/artifacts","lifecycle_stage":"active"},"data":{"metrics":[{"key":"system/x","value":"NaN","timestamp":"5","step":2}],"tags":[{"key":"a","value":"b"}]},"inputs":{}}}"#;

#[test]
fn a_batch_goes_below_the_prefix_with_the_right_headers() {
    let server = StandIn::new(vec![json("{}"), json("{}")]);
    let uri = format!("http://u%40x:p@127.0.0.1:{}/mlflow/", server.port);
    let mut client = client(&uri, &[("MLFLOW_WORKSPACE", "team"), ("MLFLOW_TRACKING_TOKEN", "t0k")]);
    let batch = Batch { metrics: vec![Metric::new("system/x", 1.5, 7, 3).unwrap()], ..Batch::default() };
    client.log_batch("r1", &batch).unwrap();
    client.set_tag("r1", &Tag::new("k", "v").unwrap()).unwrap();
    let got = server.got();
    assert!(
        got[0].head.starts_with("POST /mlflow/api/2.0/mlflow/runs/log-batch HTTP/1.1\r\n"),
        "{}",
        got[0].head
    );
    assert_eq!(got[0].header("content-type"), Some("application/json"));
    // Those in the address win, as in MLflow's own client.
    assert_eq!(got[0].header("authorization"), Some("Basic dUB4OnA="));
    assert_eq!(got[0].header("x-mlflow-workspace"), Some("team"));
    assert!(got[0].header("user-agent").unwrap().starts_with("rankscope/"));
    assert_eq!((got[0].header("origin"), got[0].header("transfer-encoding")), (None, None));
    assert_eq!(got[0].body, batch.body("r1"));
    assert_eq!(got[1].body, br#"{"key":"k","run_id":"r1","value":"v"}"#);
    // One connection for both.
    assert_eq!((got[0].connection, got[1].connection), (0, 0));
}

#[test]
fn token() {
    let server = StandIn::new(vec![json("{}")]);
    let uri = format!("http://127.0.0.1:{}", server.port);
    client(&uri, &[("MLFLOW_TRACKING_TOKEN", "t0k")]).delete_run("r").unwrap();
    assert_eq!(server.got()[0].header("authorization"), Some("Bearer t0k"));
}

#[test]
fn runs() {
    let found = format!(
        r#"{{"runs":[{}],"next_page_token":"t"}}"#,
        RUN.strip_prefix(r#"{"run":"#).unwrap().strip_suffix('}').unwrap()
    );
    let server = StandIn::new(vec![json(RUN), json(RUN), json("{}"), json(&found), json("{}")]);
    let mut client = client(&format!("http://127.0.0.1:{}", server.port), &[]);
    let tags = [Tag::new("rankscope.job", "j").unwrap()];
    let made =
        client.create_run(&NewRun { experiment_id: "1", name: None, start_time_ms: 5, tags: &tags }).unwrap();
    assert_eq!(
        (made.id.as_str(), made.status, made.start_time_ms, made.end_time_ms),
        ("r1", RunStatus::Running, Some(1_700_000_000_000), None)
    );
    assert_eq!((made.tag("a"), made.deleted), (Some("b"), false));
    let latest = client.get_run("r 1").unwrap().metrics.remove(0);
    assert!(latest.point.value.is_nan() && latest.point.timestamp_ms == 5 && latest.point.step == 2);
    client.update_run("r1", RunStatus::Failed, Some(9)).unwrap();
    let query =
        RunsQuery { experiment_ids: vec!["1".into()], filter: "f".into(), max_results: 5, page_token: None };
    let page = client.search_runs(&query).unwrap();
    assert_eq!((page.items.len(), page.next.as_deref()), (1, Some("t")));
    assert!(client.search_runs(&query).unwrap().items.is_empty());
    let got = server.got();
    assert_eq!(
        got[0].body,
        br#"{"experiment_id":"1","start_time":5,"tags":[{"key":"rankscope.job","value":"j"}]}"#
    );
    assert_eq!(got[1].target(), "/api/2.0/mlflow/runs/get?run_id=r%201");
    assert_eq!(got[2].body, br#"{"end_time":9,"run_id":"r1","status":"FAILED"}"#);
    assert_eq!(got[3].body, br#"{"experiment_ids":["1"],"filter":"f","max_results":5}"#);
    assert_eq!(client.run_url(&made), format!("http://127.0.0.1:{}/#/experiments/1/runs/r1", server.port));
}

#[test]
fn experiments() {
    let missing =
        status("404 Not Found", r#"{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"Could not find"}"#);
    let exists = status("400 Bad Request", r#"{"error_code":"RESOURCE_ALREADY_EXISTS","message":"exists"}"#);
    let one = json(r#"{"experiment":{"experiment_id":"7","name":"e","lifecycle_stage":"deleted"}}"#);
    let list = json(r#"{"experiments":[{"experiment_id":"7","name":"e","lifecycle_stage":"active"}]}"#);
    let server = StandIn::new(vec![missing, json(r#"{"experiment_id":"3"}"#), exists, one, list]);
    let mut client = client(&format!("http://127.0.0.1:{}", server.port), &[]);
    assert_eq!(client.experiment_by_name("é&").unwrap(), None);
    assert_eq!(client.create_experiment("e").unwrap().id, "3");
    let known = client.create_experiment("e").unwrap();
    assert!(known.id == "7" && known.deleted);
    assert_eq!(client.search_experiments("", None).unwrap().items.len(), 1);
    assert_eq!(server.got()[0].target(), "/api/2.0/mlflow/experiments/get-by-name?experiment_name=%C3%A9%26");
}

#[test]
fn history_in_pages() {
    let page = |n: i64, token: &str| {
        json(&format!(
            r#"{{"metrics":[{{"key":"k","value":{n}.5,"timestamp":{n},"step":{n}}}],"next_page_token":"{token}"}}"#
        ))
    };
    let server = StandIn::new(vec![page(1, "a=="), page(2, ""), json("{}")]);
    let mut client = client(&format!("http://127.0.0.1:{}", server.port), &[]);
    let point = |n: i64| Point { value: n as f64 + 0.5, timestamp_ms: n, step: n };
    assert_eq!(client.metric_history("r", "a/b").unwrap(), [point(1), point(2)]);
    assert_eq!(client.metric_history("r", "none").unwrap(), []);
    assert!(server.got()[1].target().ends_with("metric_key=a%2Fb&max_results=25000&page_token=a%3D%3D"));
}

#[test]
fn artifacts() {
    let elsewhere = RUN.replace("mlflow-artifacts:/1/r1/artifacts", "s3://bucket/1/r1");
    let server = StandIn::new(vec![json(RUN), status("200 OK", ""), json(&elsewhere)]);
    let mut client = client(&format!("http://127.0.0.1:{}/p", server.port), &[]);
    let run = client.get_run("r1").unwrap();
    assert_eq!(client.upload_artifact(&run, "rankscope/a b.json", b"[1]").unwrap(), Upload::Done);
    let got = &server.got()[1];
    assert!(
        got.head
            .starts_with("PUT /p/api/2.0/mlflow-artifacts/artifacts/1/r1/artifacts/rankscope/a%20b.json "),
        "{}",
        got.head
    );
    assert_eq!(got.body, b"[1]");
    let run = client.get_run("r1").unwrap();
    assert_eq!(client.upload_artifact(&run, "x", b"").unwrap(), Upload::NoProxy("s3".into()));
}
