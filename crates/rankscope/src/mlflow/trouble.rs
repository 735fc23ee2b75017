//! What kept a delivery from going on.

use std::fmt;
use std::time::Duration;

use super::error::Error;

#[derive(Debug)]
pub enum Trouble {
    Server(Error),
    Store(String),
    /// Another delivers this record at this moment.
    Taken(String),
    /// Metrics and status are not concerned.
    Artifact(Error),
    /// The server has it all, but the record does not say so.
    NotNoted(String),
}

impl Trouble {
    /// Equal for troubles that the user needs to hear of once.
    pub fn cause(&self) -> String {
        match self {
            Trouble::Server(Error::Connection { broken, .. }) => format!("{broken:?}"),
            Trouble::Server(Error::Status { status, code, .. }) => format!("{status} {code:?}"),
            Trouble::Server(Error::Html { status, .. }) => format!("html {status}"),
            Trouble::Server(other) => other.to_string(),
            Trouble::Store(text) | Trouble::Taken(text) => text.clone(),
            Trouble::Artifact(error) => format!("artifact {:?}", error.status()),
            Trouble::NotNoted(_) => "not noted".to_owned(),
        }
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Trouble::Server(error) | Trouble::Artifact(error) => error.is_transient(),
            Trouble::Store(_) | Trouble::Taken(_) | Trouble::NotNoted(_) => true,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Trouble::Server(error) | Trouble::Artifact(error) => error.retry_after(),
            Trouble::Store(_) | Trouble::Taken(_) | Trouble::NotNoted(_) => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Server(error) => error.fmt(f),
            Trouble::Store(text) => write!(f, "the record can't be read: {text}"),
            Trouble::Taken(text) => write!(f, "another delivers this record at this moment ({text})"),
            Trouble::Artifact(error) => {
                write!(f, "rankscope/scopes.json can't be written, metrics and status can: {error}")
            }
            Trouble::NotNoted(text) => {
                write!(f, "what was delivered can't be noted in the record: {text}")
            }
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Server(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Store(error.to_string())
    }
}
