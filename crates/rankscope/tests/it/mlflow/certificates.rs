//! TLS: private certificates, the insecure setting, client certificates, and the step from http to https.

use std::path::Path;
use std::process::Command;

use rankscope::mlflow::{Broken, Client, Error};

use super::stand_in::{StandIn, json, status};
use super::{client, settings};

/// `cert.pem` and `key.pem` by the openssl command; `authority`: as `openssl req -x509` does it unasked.
fn self_signed(dir: &Path, authority: bool, name: &str) {
    let flag = if authority { "CA:TRUE" } else { "CA:FALSE" };
    let made = Command::new("openssl")
        .current_dir(dir)
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=test"])
        .args([
            "-addext",
            &format!("subjectAltName={name}"),
            "-addext",
            &format!("basicConstraints=critical,{flag}"),
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn ask(client: &mut Client) -> Result<(), Error> {
    client.delete_run("r")
}

#[test]
fn a_private_certificate() {
    for authority in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        self_signed(dir.path(), authority, "IP:127.0.0.1");
        let server = StandIn::tls(vec![json("{}"), json("{}"), json("{}")], dir.path(), None);
        let uri = format!("https://127.0.0.1:{}", server.port);
        let error = ask(&mut client(&uri, &[])).unwrap_err();
        assert!(matches!(error, Error::Connection { broken: Broken::Tls, .. }), "{error:?}");
        assert!(
            error.to_string().contains("MLFLOW_TRACKING_SERVER_CERT_PATH") && !error.is_transient(),
            "{error}"
        );

        let pem = dir.path().join("cert.pem");
        let path = ("MLFLOW_TRACKING_SERVER_CERT_PATH", pem.to_str().unwrap());
        ask(&mut client(&uri, &[path])).unwrap();
        ask(&mut client(&uri, &[("REQUESTS_CA_BUNDLE", dir.path().to_str().unwrap())])).unwrap();
        let insecure = ("MLFLOW_TRACKING_INSECURE_TLS", "true");
        assert_eq!(settings(&uri, &[insecure]).unwrap().unwrap().warnings.len(), 1);
        ask(&mut client(&uri, &[insecure])).unwrap();
        let conflict = settings(&uri, &[insecure, path]).unwrap_err().to_string();
        assert!(conflict.contains(insecure.0) && conflict.contains(path.0), "{conflict}");
    }
}

#[test]
fn trusted_but_for_another_host() {
    for authority in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        self_signed(dir.path(), authority, "DNS:other.example.com");
        let server = StandIn::tls(vec![], dir.path(), None);
        let pem = dir.path().join("cert.pem");
        let path = ("MLFLOW_TRACKING_SERVER_CERT_PATH", pem.to_str().unwrap());
        let error = ask(&mut client(&format!("https://127.0.0.1:{}", server.port), &[path])).unwrap_err();
        assert!(matches!(error, Error::Connection { broken: Broken::Tls, .. }), "{error:?}");
    }
}

#[test]
fn files_that_are_no_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pem");
    std::fs::write(&file, "nothing").unwrap();
    for (name, path) in [
        ("MLFLOW_TRACKING_SERVER_CERT_PATH", "/no/such/file.pem"),
        ("MLFLOW_TRACKING_SERVER_CERT_PATH", file.to_str().unwrap()),
        ("MLFLOW_TRACKING_CLIENT_CERT_PATH", file.to_str().unwrap()),
    ] {
        let error = Client::new(&settings("https://h", &[(name, path)]).unwrap().unwrap()).err().unwrap();
        assert!(matches!(error, Error::Settings(_)) && error.to_string().contains(path), "{error}");
    }
}

#[test]
fn client_certificate() {
    let (server_dir, client_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    self_signed(server_dir.path(), false, "IP:127.0.0.1");
    self_signed(client_dir.path(), false, "DNS:client");
    let read = |name: &str| std::fs::read_to_string(client_dir.path().join(name)).unwrap();
    let both = client_dir.path().join("both.pem");
    std::fs::write(&both, read("cert.pem") + &read("key.pem")).unwrap();
    let server = StandIn::tls(vec![json("{}")], server_dir.path(), Some(&client_dir.path().join("cert.pem")));
    let uri = format!("https://127.0.0.1:{}", server.port);
    let pem = server_dir.path().join("cert.pem");
    let trust = ("MLFLOW_TRACKING_SERVER_CERT_PATH", pem.to_str().unwrap());
    assert!(ask(&mut client(&uri, &[trust])).is_err());
    ask(&mut client(&uri, &[trust, ("MLFLOW_TRACKING_CLIENT_CERT_PATH", both.to_str().unwrap())])).unwrap();
}

#[test]
fn from_http_to_https() {
    let dir = tempfile::tempdir().unwrap();
    self_signed(dir.path(), true, "IP:127.0.0.1");
    let secure = StandIn::tls(vec![json("{}"), json("{}")], dir.path(), None);
    let moved =
        format!("301 Moved\r\nLocation: https://127.0.0.1:{}/api/2.0/mlflow/runs/delete", secure.port);
    let plain = StandIn::new(vec![status(&moved, "<html>moved</html>")]);
    let pem = dir.path().join("cert.pem");
    let trust = ("MLFLOW_TRACKING_SERVER_CERT_PATH", pem.to_str().unwrap());
    let mut client = client(&format!("http://127.0.0.1:{}", plain.port), &[trust]);
    ask(&mut client).unwrap();
    ask(&mut client).unwrap();
    assert_eq!(secure.got()[0].body, br#"{"run_id":"r"}"#);
    assert_eq!((plain.got().len(), secure.got().len()), (1, 2));
    // And never back.
    let back = format!("307 Moved\r\nLocation: http://127.0.0.1:{}/api/2.0/mlflow/runs/delete", plain.port);
    let secure = StandIn::tls(vec![status(&back, "")], dir.path(), None);
    let error = ask(&mut super::client(&format!("https://127.0.0.1:{}", secure.port), &[trust])).unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error:?}");
}
