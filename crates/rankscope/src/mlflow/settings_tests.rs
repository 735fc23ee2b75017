//! Settings: what each variable does, and that no credential is ever shown.

use super::*;

fn read_with(vars: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
    Settings::from_lookup(None, &|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
}

fn settings(vars: &[(&str, &str)]) -> Settings {
    read_with(vars).unwrap().unwrap()
}

fn problem(vars: &[(&str, &str)]) -> String {
    read_with(vars).unwrap_err().to_string()
}

const URI: &str = "MLFLOW_TRACKING_URI";

fn basic(user: &str, password: &str) -> Auth {
    Auth::Basic { user: Secret::new(user), password: Secret::new(password) }
}

fn bearer(token: &str) -> Auth {
    Auth::Bearer(Secret::new(token))
}

#[test]
fn address_and_defaults() {
    assert!(read_with(&[]).unwrap().is_none() && read_with(&[(URI, " ")]).unwrap().is_none());
    let s = settings(&[(URI, "https://h/mlflow/"), ("MLFLOW_WORKSPACE", "w")]);
    assert_eq!(s.server(), "https://h/mlflow");
    assert_eq!((s.timeout, s.auth, s.tls), (Duration::from_secs(120), Auth::None, Tls::System));
    assert_eq!((s.workspace.as_deref(), s.follow_redirects), (Some("w"), true));
    let explicit = Settings::from_lookup(Some("http://e"), &|_| Some("http://env".to_owned()));
    // Every variable has that value here, so flags can't be read: the address was taken first.
    assert!(explicit.unwrap_err().to_string().contains("expected true or false"));
}

#[test]
fn other_stores_are_named_without_their_password() {
    for (uri, what) in [
        ("file:./mlruns", "a `file:` address"),
        ("sqlite:///m.db", "a `sqlite:` address"),
        ("postgresql+psycopg2://u:s3cret@h/db", "a `postgresql+psycopg2:` address"),
        ("./mlruns", "a path"),
        ("/data/my runs:x", "a path"),
    ] {
        let text = problem(&[(URI, uri)]);
        assert!(text.contains(what) && text.contains("needs an http(s) or databricks URI"), "{text}");
        assert!(!text.contains("s3cret"));
    }
    assert!(!problem(&[(URI, "http://u:s3c/ret@h:5000")]).contains("s3c"));
}

#[test]
fn order_of_credentials() {
    let token = ("MLFLOW_TRACKING_TOKEN", "t0k");
    let user = ("MLFLOW_TRACKING_USERNAME", "u");
    let password = ("MLFLOW_TRACKING_PASSWORD", "p");
    assert_eq!(settings(&[(URI, "http://h"), token]).auth, bearer("t0k"));
    assert_eq!(settings(&[(URI, "http://h"), token, user]).auth, bearer("t0k"));
    assert_eq!(settings(&[(URI, "http://h"), user]).auth, Auth::None);
    assert_eq!(settings(&[(URI, "http://h"), token, user, password]).auth, basic("u", "p"));
    assert_eq!(settings(&[(URI, "http://a:b@h"), token, user, password]).auth, basic("a", "b"));
}

#[test]
fn credentials_file() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().to_str().unwrap();
    std::fs::create_dir(home.path().join(".mlflow")).unwrap();
    let text = "[mlflow]\nmlflow_tracking_username = ann\nmlflow_tracking_password = filepw\n";
    std::fs::write(home.path().join(".mlflow/credentials"), text).unwrap();
    assert_eq!(settings(&[(URI, "http://h"), ("HOME", at)]).auth, basic("ann", "filepw"));
    let password = ("MLFLOW_TRACKING_PASSWORD", "env");
    assert_eq!(settings(&[(URI, "http://h"), ("HOME", at), password]).auth, basic("ann", "env"));
}

#[test]
fn databricks_hosts() {
    let host = ("DATABRICKS_HOST", "dbc.example.com");
    let s = settings(&[(URI, "databricks"), host, ("DATABRICKS_TOKEN", "dapi1")]);
    assert_eq!((s.server().as_str(), s.auth), ("https://dbc.example.com", bearer("dapi1")));
    assert!(problem(&[(URI, "databricks")]).contains("DATABRICKS_HOST"));
    assert!(problem(&[(URI, "databricks"), host]).contains("DATABRICKS_TOKEN"));
    let home = tempfile::tempdir().unwrap();
    let text = "[DEFAULT]\nhost = https://d/\ntoken = dd\n[prod]\nhost = p.example.com\ntoken = pp\n";
    std::fs::write(home.path().join(".databrickscfg"), text).unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let s = settings(&[(URI, "databricks://prod"), home, host]);
    assert_eq!((s.server().as_str(), s.auth), ("https://p.example.com", bearer("pp")));
    let s = settings(&[(URI, "databricks"), home]);
    assert_eq!((s.server().as_str(), s.auth), ("https://d", bearer("dd")));
}

#[test]
fn certificates() {
    let (insecure, path) =
        (("MLFLOW_TRACKING_INSECURE_TLS", "true"), ("MLFLOW_TRACKING_SERVER_CERT_PATH", "/ca.pem"));
    let requests = ("REQUESTS_CA_BUNDLE", "/r.pem");
    let uri = (URI, "https://h");
    assert_eq!(settings(&[uri, path, requests]).tls, Tls::Bundle("/ca.pem".into()));
    assert_eq!(settings(&[uri, requests]).tls, Tls::Bundle("/r.pem".into()));
    let s = settings(&[uri, insecure, requests]);
    assert!(s.tls == Tls::Insecure && s.warnings[0].contains("not checked"));
    let text = problem(&[uri, insecure, path]);
    assert!(text.contains(insecure.0) && text.contains(path.0), "{text}");
    assert!(problem(&[uri, ("MLFLOW_TRACKING_INSECURE_TLS", "maybe")]).contains("maybe"));
}

#[test]
fn timeouts() {
    let uri = (URI, "http://h");
    assert_eq!(settings(&[uri, ("MLFLOW_HTTP_REQUEST_TIMEOUT", "2.5")]).timeout, Duration::from_millis(2500));
    for bad in ["0", "-1", "nan", "x"] {
        assert!(problem(&[uri, ("MLFLOW_HTTP_REQUEST_TIMEOUT", bad)]).contains("seconds"));
    }
}

#[test]
fn nothing_shows_a_credential() {
    let vars = [
        (URI, "https://userx:s3cretpw@h:5000/p"),
        ("MLFLOW_TRACKING_TOKEN", "t0ken"),
        ("HTTPS_PROXY", "http://pu:pr0xypw@proxy:3128"),
    ];
    let s = settings(&vars);
    let shown = format!("{s:?} {} {:?} {s:#?}", s.server(), s.auth);
    for secret in ["userx", "s3cretpw", "t0ken", "pr0xypw"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(s.proxy.is_some());
}
