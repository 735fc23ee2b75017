//! MLflow's environment variables → plain values. One reader, which takes the environment as a closure.
//!
//! Order of credentials, as seen of MLflow's own client: those in the address, else user and password (environment, else
//! `~/.mlflow/credentials`), else the token.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::Address;
use super::secret::Secret;
use super::{ini, proxy};

/// What a command says that needs a server and knows none.
pub const NO_SERVER: &str = "no MLflow server: set MLFLOW_TRACKING_URI, or give --tracking-uri";

/// How to reach a server. Printing it shows no credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub(crate) server: Address,
    pub auth: Auth,
    pub tls: Tls,
    /// PEM with certificate chain and private key.
    pub client_cert: Option<PathBuf>,
    /// For one whole request.
    pub timeout: Duration,
    pub workspace: Option<String>,
    pub follow_redirects: bool,
    pub(crate) proxy: Option<Secret>,
    /// What the user should know, once.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    None,
    Basic { user: Secret, password: Secret },
    Bearer(Secret),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The system's certificates, else Mozilla's.
    System,
    /// A PEM file, or a directory of them.
    Bundle(PathBuf),
    /// Certificates are not checked.
    Insecure,
}

/// Wrong settings: a text for the user, without any credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// `file:`, `sqlite:`, a path, …: what it is instead.
    NotHttp(String),
    Invalid(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHttp(what) => {
                write!(f, "the MLflow tracking URI is {what}: rankscope needs an http(s) or databricks URI")
            }
            Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SettingsError {}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// From this process's environment. `Ok(None)`: no tracking URI anywhere.
    pub fn from_env(uri: Option<&str>) -> Result<Option<Self>, SettingsError> {
        Self::from_lookup(uri, &crate::env_vars::mlflow)
    }

    /// `uri`: given explicitly, else MLFLOW_TRACKING_URI.
    pub fn from_lookup(uri: Option<&str>, get: Lookup) -> Result<Option<Self>, SettingsError> {
        let get: Lookup = &|name| get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let Some(uri) =
            uri.map(|u| u.trim().to_owned()).filter(|u| !u.is_empty()).or_else(|| get("MLFLOW_TRACKING_URI"))
        else {
            return Ok(None);
        };
        let (server, auth) = match uri.split_once("://").unwrap_or((&uri, "")) {
            ("databricks", profile) => databricks(profile, get)?,
            _ => plain(&uri, get)?,
        };
        let mut warnings = Vec::new();
        let tls = tls(get, &mut warnings)?;
        for name in ["MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4"] {
            if get(name).is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0")) {
                warnings
                    .push(format!("{name} is set, but rankscope knows only basic and token authentication"));
            }
        }
        let settings = Self {
            auth,
            tls,
            client_cert: get("MLFLOW_TRACKING_CLIENT_CERT_PATH").map(PathBuf::from),
            timeout: timeout(get)?,
            workspace: get("MLFLOW_WORKSPACE"),
            follow_redirects: flag(get, "MLFLOW_ALLOW_HTTP_REDIRECTS", true)?,
            proxy: proxy::choose(&server, get),
            server,
            warnings,
        };
        Ok(Some(settings))
    }

    /// Address of the server, for people: without user information.
    pub fn server(&self) -> String {
        self.server.to_string()
    }
}

fn invalid<T>(text: impl Into<String>) -> Result<T, SettingsError> {
    Err(SettingsError::Invalid(text.into()))
}

fn plain(uri: &str, get: Lookup) -> Result<(Address, Auth), SettingsError> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https") => {}
        // Only the scheme is repeated: a database address holds a password.
        Some(scheme) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
            return Err(SettingsError::NotHttp(format!("a `{scheme}:` address")));
        }
        _ => return Err(SettingsError::NotHttp("a path".to_owned())),
    }
    let Some((server, user)) = Address::parse(uri) else {
        return invalid(
            "the MLflow tracking URI is not a valid http(s) address (in a password, / @ and ? have to be percent-encoded)",
        );
    };
    let auth = match user {
        Some((user, password)) => Auth::Basic { user, password },
        None => credentials(get),
    };
    Ok((server, auth))
}

fn credentials(get: Lookup) -> Auth {
    let file =
        get("HOME").and_then(|home| read(&Path::new(&home).join(".mlflow/credentials"))).unwrap_or_default();
    let either = |name: &str| {
        get(name).or_else(|| ini::value(&file, "mlflow", &name.to_ascii_lowercase())).map(Secret::new)
    };
    let pair = either("MLFLOW_TRACKING_USERNAME").zip(either("MLFLOW_TRACKING_PASSWORD"));
    match (pair, get("MLFLOW_TRACKING_TOKEN")) {
        (Some((user, password)), _) => Auth::Basic { user, password },
        (None, Some(token)) => Auth::Bearer(Secret::new(token)),
        (None, None) => Auth::None,
    }
}

fn databricks(profile: &str, get: Lookup) -> Result<(Address, Auth), SettingsError> {
    let path = get("DATABRICKS_CONFIG_FILE").map(PathBuf::from);
    let path = path.or_else(|| get("HOME").map(|home| Path::new(&home).join(".databrickscfg")));
    let file = path.and_then(|p| read(&p)).unwrap_or_default();
    let chosen = Some(profile.to_owned()).filter(|p| !p.is_empty());
    let from_env = |name: &str| if chosen.is_none() { get(name) } else { None };
    let section =
        chosen.clone().or_else(|| get("DATABRICKS_CONFIG_PROFILE")).unwrap_or_else(|| "DEFAULT".to_owned());
    let from_file = |name: &str| ini::value(&file, &section, name);
    let Some(host) = from_env("DATABRICKS_HOST").or_else(|| from_file("host")) else {
        return invalid(format!(
            "no Databricks host: set DATABRICKS_HOST, or `host` under [{section}] in ~/.databrickscfg"
        ));
    };
    let host = if host.contains("://") { host } else { format!("https://{host}") };
    let Some((server, _)) = Address::parse(&host) else {
        return invalid("the Databricks host is not a valid address");
    };
    let token = from_env("DATABRICKS_TOKEN").or_else(|| from_file("token"));
    let user = from_env("DATABRICKS_USERNAME").or_else(|| from_file("username"));
    let password = from_env("DATABRICKS_PASSWORD").or_else(|| from_file("password"));
    match (token, user.zip(password)) {
        (Some(token), _) => Ok((server, Auth::Bearer(Secret::new(token)))),
        (None, Some((user, password))) => {
            Ok((server, Auth::Basic { user: Secret::new(user), password: Secret::new(password) }))
        }
        (None, None) => invalid(format!(
            "no Databricks token: set DATABRICKS_TOKEN, or `token` under [{section}] in ~/.databrickscfg"
        )),
    }
}

fn tls(get: Lookup, warnings: &mut Vec<String>) -> Result<Tls, SettingsError> {
    let bundle = get("MLFLOW_TRACKING_SERVER_CERT_PATH");
    if flag(get, "MLFLOW_TRACKING_INSECURE_TLS", false)? {
        if bundle.is_some() {
            return invalid(
                "MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH are both set: unset one of them",
            );
        }
        warnings.push("the server's certificate is not checked (MLFLOW_TRACKING_INSECURE_TLS)".to_owned());
        return Ok(Tls::Insecure);
    }
    let bundle = bundle.or_else(|| get("REQUESTS_CA_BUNDLE")).or_else(|| get("CURL_CA_BUNDLE"));
    Ok(bundle.map_or(Tls::System, |path| Tls::Bundle(PathBuf::from(path))))
}

fn timeout(get: Lookup) -> Result<Duration, SettingsError> {
    let Some(text) = get("MLFLOW_HTTP_REQUEST_TIMEOUT") else { return Ok(Duration::from_secs(120)) };
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds < 86_400.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => {
            invalid(format!("MLFLOW_HTTP_REQUEST_TIMEOUT is `{text}`: expected a number of seconds above 0"))
        }
    }
}

fn flag(get: Lookup, name: &str, default: bool) -> Result<bool, SettingsError> {
    match get(name).map(|v| v.to_ascii_lowercase()).as_deref() {
        None => Ok(default),
        Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(other) => invalid(format!("{name} is `{other}`: expected true or false")),
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
