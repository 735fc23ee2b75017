//! Everything that can go wrong between us and a server.

use std::io::Read;
use std::time::{Duration, Instant};

use rankscope::mlflow::{Batch, Broken, Client, Error, Metric, NewRun};

use super::client;
use super::stand_in::{Reply, StandIn, json, listen, serve_one, status};

fn batch() -> Batch {
    Batch { metrics: vec![Metric::new("system/x", 1.5, 7, 3).unwrap()], ..Batch::default() }
}

fn at(server: &StandIn) -> Client {
    client(&format!("http://127.0.0.1:{}", server.port), &[])
}

fn failure(reply: Reply) -> Error {
    at(&StandIn::new(vec![reply])).log_batch("r", &batch()).unwrap_err()
}

#[test]
fn refused_and_unknown() {
    let (listener, port) = listen();
    drop(listener);
    let error = client(&format!("http://127.0.0.1:{port}"), &[]).log_batch("r", &batch()).unwrap_err();
    assert!(
        matches!(error, Error::Connection { broken: Broken::Refused, .. }) && error.is_transient(),
        "{error}"
    );
    let error = client("http://no-such-host.invalid", &[]).log_batch("r", &batch()).unwrap_err();
    assert!(matches!(error, Error::Connection { .. }) && error.is_transient(), "{error:?}");
}

#[test]
fn statuses() {
    let error = failure(status("429 Too Many\r\nRetry-After: 30", ""));
    assert!(error.is_transient() && error.retry_after() == Some(Duration::from_secs(30)));
    let error = failure(status("503 Unavailable", "<html>nginx</html>"));
    assert!(error.is_transient() && error.status() == Some(503));
    let error = failure(status("413 Too Large", "<html>nginx</html>"));
    assert!(!error.is_transient());
    let pool = r#"{"error_code":"BAD_REQUEST","message":"QueuePool limit of size 5 overflow 10 reached, connection timed out"}"#;
    let error = failure(status("400 Bad Request", pool));
    assert!(error.is_transient() && error.code() == Some("BAD_REQUEST"));
    let error = failure(status(
        "400 Bad Request",
        r#"{"error_code":"INVALID_PARAMETER_VALUE","message":"limit 250"}"#,
    ));
    assert!(!error.is_transient() && error.to_string().contains("INVALID_PARAMETER_VALUE: limit 250"));
    let host = "Invalid Host header - possible DNS rebinding attack detected";
    let text = failure(status("403 Forbidden\r\nContent-Type: text/plain", host)).to_string();
    assert!(text.contains(host) && text.contains("--allowed-hosts"), "{text}");
    let text = failure(status("401 Unauthorized\r\nContent-Type: text/html", "You are not authenticated."))
        .to_string();
    assert!(
        text.contains("You are not authenticated.") && text.contains("MLFLOW_TRACKING_USERNAME"),
        "{text}"
    );
}

#[test]
fn a_login_page_is_no_success() {
    let error = failure(status("200 OK\r\nContent-Type: text/html", "<!doctype html><html>log in</html>"));
    assert!(error.to_string().contains("is a login proxy in front?") && !error.is_transient(), "{error}");
    for body in ["hello", "[]"] {
        let error = failure(status("200 OK", body));
        assert!(matches!(error, Error::Unexpected { .. }) && !error.is_transient(), "{error:?}");
    }
    for body in ["", "{", r#"{"run":{"info""#] {
        let error = failure(status("200 OK", body));
        assert!(error.to_string().contains("the answer has no end") && error.is_transient(), "{error:?}");
    }
}

#[test]
fn no_answer_in_time() {
    let server = StandIn::new(vec![Reply::Slow(Duration::from_secs(5))]);
    let mut client = at(&server);
    client.set_timeout(Duration::from_millis(300));
    let start = Instant::now();
    let error = client.log_batch("r", &batch()).unwrap_err();
    assert!(
        matches!(error, Error::Connection { broken: Broken::Timeout, .. }) && error.is_transient(),
        "{error:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_redirect_keeps_method_and_body() {
    for code in ["301", "302", "307", "308"] {
        let server = StandIn::new(vec![
            status(&format!("{code} Moved\r\nLocation: /new/api/2.0/mlflow/runs/log-batch"), ""),
            json("{}"),
            json("{}"),
        ]);
        let mut client = at(&server);
        client.log_batch("r", &batch()).unwrap();
        client.log_batch("r", &batch()).unwrap();
        let got = server.got();
        // The second goes there at once.
        assert_eq!(got.len(), 3);
        for request in &got[1..] {
            assert!(request.head.starts_with("POST /new/api/2.0/mlflow/runs/log-batch "), "{}", request.head);
            assert_eq!(request.body, batch().body("r"));
        }
    }
}

#[test]
fn no_redirect_to_another_host_or_for_ever() {
    let login = status("302 Found\r\nLocation: https://login.example.com/oauth?state=t0ken", "");
    let error = failure(login);
    let text = error.to_string();
    assert!(text.contains("https://login.example.com/oauth") && !text.contains("t0ken"), "{text}");
    assert!(!error.is_transient());
    let away = status("307 Moved\r\nLocation: http://127.0.0.2/api/2.0/mlflow/runs/log-batch", "");
    assert!(matches!(failure(away), Error::Redirect { .. }));
    let same = status("307 Moved\r\nLocation: /api/2.0/mlflow/runs/log-batch", "");
    assert!(matches!(failure(same), Error::Redirect { .. }));
    let ways = ["/a", "/b", "/c", "/d", "/e", "/f"];
    let circle =
        ways.map(|w| status(&format!("307 Moved\r\nLocation: {w}/api/2.0/mlflow/runs/log-batch"), ""));
    let error = at(&StandIn::new(circle.to_vec())).log_batch("r", &batch()).unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }));
}

#[test]
fn a_dead_keep_alive_connection_is_replaced_at_once() {
    let server = StandIn::new(vec![Reply::ThenClose("{}".into()), json("{}"), Reply::Close, json("{}")]);
    let mut client = at(&server);
    client.log_batch("r", &batch()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    // Seen before sending.
    client.log_batch("r", &batch()).unwrap();
    // Seen only after sending: the request arrived, the answer did not. A batch may be sent twice.
    client.log_batch("r", &batch()).unwrap();
    let connections: Vec<_> = server.got().iter().map(|g| g.connection).collect();
    assert_eq!(connections, [0, 1, 1, 2]);
}

#[test]
fn only_once_and_never_for_a_new_run() {
    let server = StandIn::new(vec![json("{}"), Reply::Close, Reply::Close]);
    let mut client = at(&server);
    client.log_batch("r", &batch()).unwrap();
    let error = client.log_batch("r", &batch()).unwrap_err();
    assert!(
        matches!(error, Error::Connection { broken: Broken::Closed, .. }) && error.is_transient(),
        "{error:?}"
    );
    assert_eq!(server.got().len(), 3);

    let server = StandIn::new(vec![json("{}"), Reply::Close]);
    let mut client = at(&server);
    client.log_batch("r", &batch()).unwrap();
    let new = NewRun { experiment_id: "1", name: None, start_time_ms: 0, tags: &[] };
    assert!(client.create_run(&new).is_err());
    // It had a connection of its own, which can't have died idle, and was not repeated.
    let connections: Vec<_> = server.got().iter().map(|g| g.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[test]
fn a_reset_while_idle() {
    let (listener, port) = listen();
    let server = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        serve_one(&mut first);
        // Unread bytes make close() send a reset.
        let mut byte = [0];
        first.read_exact(&mut byte).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        serve_one(&mut second);
    });
    let mut client = client(&format!("http://127.0.0.1:{port}"), &[]);
    client.log_batch("r", &batch()).unwrap();
    client.log_batch("r", &batch()).unwrap();
    server.join().unwrap();
}

#[test]
fn a_parameter_called_timeout_is_no_timeout() {
    let said = r#"{"error_code":"INVALID_PARAMETER_VALUE","message":"bad metric name 'read_timeout '"}"#;
    assert!(!failure(status("400 Bad Request", said)).is_transient());
}

#[test]
fn points_that_an_older_server_has_already() {
    let said = r#"{"error_code":"BAD_REQUEST","message":"(sqlite3.IntegrityError) UNIQUE constraint failed: metrics.key"}"#;
    let metrics: Vec<Metric> = (0..150).map(|n| Metric::new("a", 1.0, n, n).unwrap()).collect();
    let server = StandIn::new(vec![status("400 Bad Request", said), json("{}"), json("{}")]);
    at(&server).log_batch("r", &Batch { metrics, ..Batch::default() }).unwrap();
    assert_eq!(server.got().len(), 3);
    // It says so of a piece too: then it is no duplicate.
    let server = StandIn::new(vec![status("400 Bad Request", said), status("400 Bad Request", said)]);
    assert!(at(&server).log_batch("r", &batch()).is_err());
}

#[test]
fn through_a_proxy() {
    let refusing = StandIn::new(vec![status("407 Proxy Authentication Required", "pr0xypw")]);
    let proxy = format!("http://pu:pr0xypw@127.0.0.1:{}", refusing.port);
    let ways = [("HTTP_PROXY", proxy.as_str())];
    let error = client("http://mlflow.example.com:5000", &ways).log_batch("r", &batch()).unwrap_err();
    assert!(matches!(error, Error::Connection { broken: Broken::Proxy, .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("pr0xypw"));
    assert!(
        refusing.got()[0].head.starts_with("CONNECT mlflow.example.com:5000 "),
        "{}",
        refusing.got()[0].head
    );
    // Not for what NO_PROXY names.
    let server = StandIn::new(vec![json("{}")]);
    let uri = format!("http://127.0.0.1:{}", server.port);
    client(&uri, &[ways[0], ("NO_PROXY", "127.0.0.0/8")]).log_batch("r", &batch()).unwrap();
}

#[test]
fn nothing_said_shows_a_credential() {
    let echo = r#"{"error_code":"X","message":"user bob password s3cretpw basic Ym9iOnMzY3JldHB3"}"#;
    let said = |reply: Reply| {
        let server = StandIn::new(vec![reply]);
        let uri = format!("http://bob:s3cretpw@127.0.0.1:{}", server.port);
        let error = client(&uri, &[]).log_batch("r", &batch()).unwrap_err();
        format!("{error} {error:?}")
    };
    for reply in [
        status("500 Oops", echo),
        status("200 OK", "you are bob:s3cretpw"),
        Reply::Close,
        status("302 Found\r\nLocation: http://bob:s3cretpw@127.0.0.9/x", ""),
        status("404 Not Found", "<html>s3cretpw</html>"),
        json("s3cretpw"),
    ] {
        let text = said(reply);
        assert!(!text.contains("s3cretpw") && !text.contains("Ym9iOnMzY3JldHB3"), "{text}");
    }
}
