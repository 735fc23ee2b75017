//! Runs of ours that nobody needs are taken back: one that another has taken the place of, and one that came to be there
//! twice, since the server was still making it when it was looked for. What anybody wrote to stays.

use super::artifacts::OURS;
use super::delivery::{Delivery, Phase};
use super::find::tagged_runs;
use super::target::Target;
use super::trouble::Trouble;
use super::types::Run;
use super::whose::{How, covers, has_foreign_content};

impl Delivery {
    /// Of the runs that a search has found: those that we made and do not write to.
    pub(super) fn spare_of(&self, found: &[Run]) -> Result<Vec<String>, Trouble> {
        let rows = self.reader.delivery_runs(&self.server)?;
        let is_left = |run: &Run| rows.iter().any(|row| row.new.run_id == run.id && row.state == "left");
        let is_spare = |run: &&Run| {
            self.who.made(run) && !self.is_target(&run.id) && !(is_left(run) && has_foreign_content(run))
        };
        Ok(found.iter().filter(is_spare).map(|run| run.id.clone()).collect())
    }

    /// Once the windows are where they belong.
    pub(super) fn leave(&mut self, phase: Phase) -> Result<(), Trouble> {
        if self.targets.is_empty() {
            return Ok(());
        }
        if self.made_anew && phase.is_over() {
            // What was asked for first may have come meanwhile.
            let found = tagged_runs(&mut self.client, &self.who.job)?;
            self.spare = self.spare_of(&found)?;
            self.made_anew = false;
        }
        if self.targets.iter().any(|t| t.how == How::Adopted) {
            for row in self.reader.delivery_runs(&self.server)? {
                let id = row.new.run_id;
                let stays = row.new.how != How::Created.as_str() || row.state != "open";
                if !stays && !self.is_target(&id) && !self.spare.contains(&id) {
                    self.spare.push(id);
                }
            }
        }
        while let Some(id) = self.spare.last().cloned() {
            self.give_up(&id)?;
            self.spare.pop();
        }
        Ok(())
    }

    fn is_target(&self, run_id: &str) -> bool {
        self.targets.iter().any(|target| target.run.id == run_id)
    }

    fn give_up(&mut self, id: &str) -> Result<(), Trouble> {
        let found = match self.client.get_run(id) {
            Err(error) if error.code() == Some("RESOURCE_DOES_NOT_EXIST") => None,
            run => Some(run?).filter(|run| !run.deleted),
        };
        let mut state = "deleted";
        if let Some(run) = &found {
            match self.is_needless(run)? {
                true => self.client.delete_run(id)?,
                false => state = "left",
            }
        }
        let rows = self.reader.delivery_runs(&self.server)?;
        let row = match (rows.into_iter().find(|row| row.new.run_id == id), found) {
            (Some(row), _) => row,
            // Left open, it is closed at the end with the others.
            (None, Some(run)) if state == "left" => Target::new(&self.context(), run, How::Created)?.row,
            (None, _) => return Ok(()),
        };
        Ok(self.reader.set_state(row.id, state)?)
    }

    fn is_needless(&mut self, run: &Run) -> Result<bool, Trouble> {
        if has_foreign_content(run) {
            return Ok(false);
        }
        if let Some(target) = self.targets.last().filter(|target| target.how == How::Created) {
            let id = target.run.id.clone();
            // Most often there is nothing to cover.
            if !covers(&target.run, run) && !covers(&self.client.get_run(&id)?, run) {
                return Ok(false);
            }
        }
        match self.client.artifacts(&run.id) {
            Ok(paths) => Ok(paths.iter().all(|path| path == OURS)),
            // A server that can't read its own artifact store does not know.
            Err(error) if !error.is_transient() || error.status() == Some(500) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
