//! Files of a run: ours is put there, and what else there is is looked for.

use serde::Deserialize;

use super::address::{Address, encode};
use super::client::Client;
use super::error::Error;
use super::http::Call;
use super::types::Run;

const ARTIFACTS: &str = "/api/2.0/mlflow-artifacts/artifacts/";
/// The folder that everything of ours is in.
pub(super) const OURS: &str = "rankscope";

/// What became of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upload {
    Done,
    /// The run's artifacts lie where no proxy of the server leads (`s3:`, `file:`, …): its scheme.
    NoProxy(String),
}

impl Client {
    /// `path` below the run's artifact root, such as `rankscope/scopes.json`. Overwrites.
    pub fn upload_artifact(&mut self, run: &Run, path: &str, bytes: &[u8]) -> Result<Upload, Error> {
        let Some(root) = proxied(&run.artifact_uri, self.http.server()) else {
            let scheme = run.artifact_uri.split_once(':').map_or("file", |(scheme, _)| scheme);
            return Ok(Upload::NoProxy(scheme.to_owned()));
        };
        let parts = root.split('/').chain(path.split('/')).filter(|part| !part.is_empty());
        let path = parts.map(encode).collect::<Vec<_>>().join("/");
        let call = Call {
            method: "PUT",
            path: format!("{ARTIFACTS}{path}"),
            body: Some(bytes),
            content_type: "application/octet-stream",
            repeatable: true,
        };
        self.http.send(&call).map(|_| Upload::Done)
    }

    /// What lies at the top of the run's artifacts.
    pub(super) fn artifacts(&mut self, run_id: &str) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct File {
            path: String,
        }
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            files: Vec<File>,
        }
        let answer: Answer = self.get(format!("artifacts/list?run_id={}", encode(run_id)))?;
        Ok(answer.files.into_iter().map(|file| file.path).collect())
    }
}

/// Path of an artifact root below the server's artifact proxy.
fn proxied<'a>(uri: &'a str, server: &Address) -> Option<&'a str> {
    let rest = uri.strip_prefix("mlflow-artifacts:")?;
    match rest.strip_prefix("//") {
        // `mlflow-artifacts://host:port/1/…` may name another server, which has no claim to our credentials.
        Some(rest) => {
            let (authority, path) = rest.split_once('/')?;
            (authority.is_empty() || authority == server.authority).then_some(path)
        }
        None => Some(rest.trim_start_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_roots() {
        let server = Address::parse("http://h:5000/p").unwrap().0;
        assert_eq!(proxied("mlflow-artifacts:/1/r/artifacts", &server), Some("1/r/artifacts"));
        assert_eq!(proxied("mlflow-artifacts://h:5000/1/r", &server), Some("1/r"));
        assert_eq!(proxied("mlflow-artifacts://other/1/r", &server), None);
        assert_eq!(proxied("s3://b/1", &server), None);
        assert_eq!(proxied("/data/1", &server), None);
    }
}
