//! What went wrong with a request: permanent or transient, and what the server said.

use std::fmt;
use std::time::Duration;

use super::settings::SettingsError;

/// Addresses in here carry no user information and no query, texts no credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Settings(SettingsError),
    /// No answer.
    Connection {
        url: String,
        broken: Broken,
        detail: String,
    },
    /// An answer other than success. `code`: MLflow's error_code.
    Status {
        url: String,
        status: u16,
        code: Option<String>,
        message: String,
        retry_after: Option<Duration>,
    },
    /// A page for people instead of an answer.
    Html {
        url: String,
        status: u16,
        retry_after: Option<Duration>,
    },
    /// A redirect that isn't followed: to another host, from https to http, or in a circle.
    Redirect {
        from: String,
        to: String,
        status: u16,
    },
    /// Success, but not in the form that MLflow documents.
    Unexpected {
        url: String,
        detail: String,
    },
}

/// At which point a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Refused,
    NameNotFound,
    Tls,
    Timeout,
    /// Closed or reset by the server or something between.
    Closed,
    /// The answer came, without its end.
    CutShort,
    Proxy,
    Other,
}

const BUSY_WORDS: [&str; 5] = ["queuepool", "timeout", "timed out", "is locked", "deadlock"];

impl Error {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            // A certificate does not get better by waiting.
            Self::Connection { broken, .. } => *broken != Broken::Tls,
            Self::Status { status: 400, code, message, .. } => {
                // With its connection pool used up, or its database locked, MLflow answers 400 BAD_REQUEST.
                let text = message.to_ascii_lowercase();
                code.as_deref().is_none_or(|code| code == "BAD_REQUEST")
                    && BUSY_WORDS.iter().any(|word| text.contains(word))
            }
            Self::Status { status, .. } | Self::Html { status, .. } => {
                matches!(status, 408 | 429 | 500..=599)
            }
            Self::Settings(_) | Self::Redirect { .. } | Self::Unexpected { .. } => false,
        }
    }

    /// The server is well, it only does not take what it was sent: too much at once, or something odd in it.
    pub(super) fn is_about_content(&self) -> bool {
        matches!(self.status(), Some(400 | 413)) && !self.is_transient()
    }

    /// What the server said, without the address.
    pub fn said(&self) -> String {
        match self {
            Self::Status { message, .. } if !message.is_empty() => message.clone(),
            other => other.to_string(),
        }
    }

    /// MLflow 2 on points that it has already: what its database said (SQLite, PostgreSQL, MySQL).
    pub(super) fn is_duplicate(&self) -> bool {
        let said = |message: &str| {
            let words = ["UNIQUE constraint failed: metrics", "UniqueViolation", "Duplicate entry"];
            words.iter().any(|word| message.contains(word))
        };
        matches!(self, Self::Status { status: 400, message, .. } if said(message))
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } | Self::Html { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// MLflow's error_code.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Status { code, .. } => code.as_deref(),
            _ => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } | Self::Html { status, .. } | Self::Redirect { status, .. } => {
                Some(*status)
            }
            _ => None,
        }
    }
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Connection { url, broken, detail } => {
                let what = match broken {
                    Broken::Refused => "connection refused",
                    Broken::NameNotFound => "host name not found",
                    Broken::Tls => "TLS failed",
                    Broken::Timeout => "no answer in time",
                    Broken::Closed => "connection closed before the answer",
                    Broken::CutShort => "the answer has no end",
                    Broken::Proxy => "the HTTP proxy did not connect",
                    Broken::Other => "connection failed",
                };
                write!(f, "{url}: {what}")?;
                // Of a refused connection it says the same once more.
                if !detail.is_empty() && *broken != Broken::Refused {
                    write!(f, " ({detail})")?;
                }
                match broken {
                    Broken::Tls => f.write_str(
                        "; for a private certificate set MLFLOW_TRACKING_SERVER_CERT_PATH to its PEM file",
                    ),
                    _ => Ok(()),
                }
            }
            Self::Status { url, status, code, message, .. } => {
                write!(f, "{url}: HTTP {status}")?;
                if let Some(code) = code {
                    write!(f, " {code}")?;
                }
                if !message.is_empty() {
                    write!(f, ": {message}")?;
                }
                f.write_str(hint(*status, message))
            }
            Self::Html { url, status: status @ 200..=299, .. } => {
                write!(f, "got HTML from {url} (HTTP {status}), is a login proxy in front?")
            }
            Self::Html { url, status, .. } => {
                write!(f, "got an HTML page with HTTP {status} from {url}")?;
                f.write_str(if *status == 404 { ": is this the address of an MLflow server?" } else { "" })
            }
            Self::Redirect { from, to, status } => {
                write!(
                    f,
                    "{from} redirects to {to} (HTTP {status}), which is not followed: set the tracking URI to the final address, or is a login proxy in front?"
                )
            }
            Self::Unexpected { url, detail } => write!(f, "{url}: unexpected answer: {detail}"),
        }
    }
}

fn hint(status: u16, message: &str) -> &'static str {
    match status {
        401 => {
            "; the server does not know these credentials (MLFLOW_TRACKING_USERNAME and _PASSWORD, or _TOKEN)"
        }
        403 if message.contains("Invalid Host header") => {
            "; start the server with --allowed-hosts and the name used here"
        }
        403 => "; the credentials are known but may not do this",
        _ => "",
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, message: &str) -> Error {
        let retry_after = Some(Duration::from_secs(30));
        Error::Status { url: "http://h".into(), status, code: None, message: message.into(), retry_after }
    }

    #[test]
    fn permanent_and_transient() {
        for s in [408, 429, 500, 502, 503, 504] {
            assert!(status(s, "").is_transient(), "{s}");
        }
        for s in [301, 400, 401, 403, 404, 413] {
            assert!(!status(s, "").is_transient(), "{s}");
        }
        let pool = "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00";
        assert!(status(400, pool).is_transient());
        assert!(status(400, "(sqlite3.OperationalError) database is locked").is_transient());
        assert!(status(400, "Lock wait timeout exceeded; try restarting transaction").is_transient());
        assert!(!status(400, "can contain at most 250 metrics").is_transient());
        assert!(status(400, "odd").is_about_content() && !status(400, pool).is_about_content());
        assert!(status(413, "").is_about_content() && !status(403, "").is_about_content());
        let connection = |broken| Error::Connection { url: String::new(), broken, detail: String::new() };
        assert!(connection(Broken::Refused).is_transient() && !connection(Broken::Tls).is_transient());
        assert_eq!(status(429, "").retry_after(), Some(Duration::from_secs(30)));
    }

    #[test]
    fn words() {
        let host = "Invalid Host header - possible DNS rebinding attack detected";
        let text = status(403, host).to_string();
        assert!(text.contains(host) && text.contains("--allowed-hosts"));
        assert_ne!(status(401, "").to_string(), status(403, "").to_string());
        let html = Error::Html { url: "http://h/x".into(), status: 200, retry_after: None };
        assert_eq!(html.to_string(), "got HTML from http://h/x (HTTP 200), is a login proxy in front?");
    }
}
