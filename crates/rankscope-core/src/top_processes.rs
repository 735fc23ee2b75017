//! Which programs hold the memory: processes grouped by name, biggest first.

/// One process as /proc/<pid>/status shows it; bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub pid: u32,
    /// At most 15 bytes; no command line.
    pub name: String,
    pub anon: u64,
    /// Mapped shared memory: counted in each process that maps it.
    pub shmem: u64,
    /// Mapped files: page cache, which can be given back.
    pub file: u64,
}

impl Held {
    fn total(&self) -> u64 {
        self.anon.saturating_add(self.shmem)
    }
}

/// Processes of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    pub count: u32,
    /// The biggest.
    pub pid: u32,
    pub anon: u64,
    pub shmem: u64,
    pub file: u64,
    /// Its memory.
    pub biggest: u64,
}

impl Group {
    /// Without mapped files.
    pub fn total(&self) -> u64 {
        self.anon.saturating_add(self.shmem)
    }

    /// What most of it is.
    pub fn kind(&self) -> &'static str {
        if self.shmem > self.anon { "shmem" } else { "anon" }
    }
}

/// The biggest groups, `at_most` of them.
pub fn groups(processes: impl IntoIterator<Item = Held>, at_most: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for process in processes {
        let total = process.total();
        match groups.iter_mut().find(|g| g.name == process.name) {
            Some(group) => {
                group.count += 1;
                group.anon = group.anon.saturating_add(process.anon);
                group.shmem = group.shmem.saturating_add(process.shmem);
                group.file = group.file.saturating_add(process.file);
                if total > group.biggest {
                    (group.biggest, group.pid) = (total, process.pid);
                }
            }
            None => groups.push(Group {
                count: 1,
                pid: process.pid,
                anon: process.anon,
                shmem: process.shmem,
                file: process.file,
                biggest: total,
                name: process.name,
            }),
        }
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.total()));
    groups.truncate(at_most);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pid: u32, name: &str, anon: u64, shmem: u64) -> Held {
        Held { pid, name: name.to_owned(), anon, shmem, file: 1 }
    }

    #[test]
    fn workers_of_one_name_are_one_group() {
        let workers = (10..26).map(|pid| held(pid, "pt_data_worker", 5, 100 + u64::from(pid)));
        let all = workers.chain([held(1, "python", 900, 0), held(2, "sh", 1, 0)]);
        let found = groups(all, 2);
        assert_eq!(found.len(), 2);
        let first = &found[0];
        assert_eq!((first.name.as_str(), first.count, first.pid), ("pt_data_worker", 16, 25));
        assert_eq!((first.anon, first.file, first.kind()), (80, 16, "shmem"));
        assert_eq!((found[1].name.as_str(), found[1].total(), found[1].kind()), ("python", 900, "anon"));
    }
}
