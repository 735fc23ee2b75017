//! What kept a delivery from going on.

use std::fmt;
use std::time::Duration;

use super::error::Error;

#[derive(Debug)]
pub enum Trouble {
    Server(Error),
    Store(String),
}

impl Trouble {
    /// Equal for troubles that the user needs to hear of once.
    pub fn cause(&self) -> String {
        match self {
            Trouble::Server(Error::Connection { broken, .. }) => format!("{broken:?}"),
            Trouble::Server(Error::Status { status, code, .. }) => format!("{status} {code:?}"),
            Trouble::Server(Error::Html { status, .. }) => format!("html {status}"),
            Trouble::Server(other) => other.to_string(),
            Trouble::Store(text) => text.clone(),
        }
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Trouble::Server(error) => error.is_transient(),
            Trouble::Store(_) => true,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Trouble::Server(error) => error.retry_after(),
            Trouble::Store(_) => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Server(error) => error.fmt(f),
            Trouble::Store(text) => write!(f, "the record can't be read: {text}"),
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
