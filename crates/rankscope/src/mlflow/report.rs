//! The page of a job, put into its run when the job has ended.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rankscope_core::ending::Ending;
use rankscope_core::postmortem::Recorded;
use rankscope_core::report::{make, render};

use super::artifacts::Upload;
use super::delivery::Delivery;
use crate::store::records_in;
use crate::{recorded, report};

const ARTIFACT: &str = "rankscope/report.html";
/// Records that one report of a run's end reads; `rankscope report` reads all.
const RECORDS: usize = 64;
/// Of records that can be read in a second, also on a slow disk: a report takes a small part of each.
const BYTES_PER_SECOND: f64 = 150e6;
/// For making the page and sending it.
const LEAST_LEFT: Duration = Duration::from_secs(1);

impl Delivery {
    /// By rank 0 alone. Returns, in a line, what kept it from being there; quiet where it was not wanted or the run's
    /// artifacts can't be reached.
    pub fn report(&mut self, end: Option<&Ending>, until: Instant) -> Option<String> {
        if self.plan.no_report || self.who.rank != 0 || self.targets.is_empty() {
            return None;
        }
        let why = self.send_report(end, until).err()?;
        let path = self.reader.path().parent().unwrap_or(Path::new(".")).display();
        Some(format!("{ARTIFACT} is not in the run: {why}; `rankscope report {path}` makes it"))
    }

    fn send_report(&mut self, end: Option<&Ending>, until: Instant) -> Result<(), String> {
        let left = || until.saturating_duration_since(Instant::now());
        let files = self.beside();
        let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
        if left() < LEAST_LEFT + Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND) {
            return Err("no time was left".to_owned());
        }
        let Some(id) = self.targets.last().map(|target| target.run.id.clone()) else { return Ok(()) };
        self.client.set_timeout(left());
        let run = self.client.get_run(&id).map_err(|error| error.to_string())?;
        let recorded = self.recorded(end, files)?;
        let files: Vec<PathBuf> = recorded.iter().map(|(file, _)| file.clone()).collect();
        let mut material = report::of_recorded(recorded)?;
        report::look_why_slow(&mut material, &files);
        let training = report::of_client(&mut self.client, &run, until - LEAST_LEFT);
        material.run = training.run;
        material.training = training.metrics;
        material.remarks.extend(training.remarks);
        let page = make(material).map(|report| render(&report)).ok_or("nothing was recorded")?;
        self.client.set_timeout(left().max(Duration::from_millis(1)));
        match self.client.upload_artifact(&run, ARTIFACT, page.as_bytes()) {
            Ok(Upload::Done | Upload::NoProxy(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Records of other ranks of the job.
    fn beside(&self) -> Vec<PathBuf> {
        let own = self.reader.path();
        let mut files = own.parent().map(records_in).unwrap_or_default();
        files.retain(|file| file != own);
        files.truncate(RECORDS);
        files
    }

    fn recorded(
        &self,
        end: Option<&Ending>,
        others: Vec<PathBuf>,
    ) -> Result<Vec<(PathBuf, Recorded)>, String> {
        let mut own = recorded::of(&self.reader)?;
        own.ending = own.ending.or_else(|| end.cloned());
        let mut all = vec![(self.reader.path().to_owned(), own)];
        // Theirs may be on a disk that fails: ours is worth showing.
        all.extend(others.into_iter().filter_map(|file| recorded::one(&file).ok().map(|one| (file, one))));
        Ok(recorded::newest(all))
    }
}
