//! The MLflow client against a stand-in server. tests/test_mlflow_client.py drives it against a real one.

mod certificates;
mod faults;
mod requests;
mod stand_in;

use rankscope::mlflow::{Client, Settings, SettingsError};

/// A client set up by environment variables, as a user would.
pub fn client(uri: &str, vars: &[(&str, &str)]) -> Client {
    Client::new(&settings(uri, vars).unwrap().unwrap()).unwrap()
}

pub fn settings(uri: &str, vars: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
    Settings::from_lookup(Some(uri), &|name| {
        vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    })
}
