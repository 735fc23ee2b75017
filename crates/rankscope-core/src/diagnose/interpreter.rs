//! Which Python a process runs, from the files that are mapped into it.

/// The newest CPython whose memory the sampler knows.
pub const NEWEST: (u32, u32) = (3, 15);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpreter {
    pub version: Option<(u32, u32)>,
    pub free_threaded: bool,
    pub pypy: bool,
    pub musl: bool,
    /// A file of the interpreter that is mapped and no longer on the disk.
    pub deleted: Option<String>,
    named: bool,
}

impl Interpreter {
    /// `exe`: what /proc/<pid>/exe points to; `maps`: the text of /proc/<pid>/maps.
    pub fn of(exe: &str, maps: &str) -> Interpreter {
        let mut found = Interpreter::default();
        found.look_at(exe);
        let mut last = "";
        // Five fields, then the path, which may have spaces.
        for path in maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..))) {
            if path != last {
                found.look_at(path);
                last = path;
            }
        }
        found
    }

    pub fn is_python(&self) -> bool {
        self.named || self.pypy
    }

    fn look_at(&mut self, path: &str) {
        const DELETED: &str = " (deleted)";
        let (path, deleted) = match path.strip_suffix(DELETED) {
            Some(path) => (path, true),
            None => (path, false),
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        self.musl |= name.starts_with("ld-musl-") || name.starts_with("libc.musl-");
        self.pypy |= name.starts_with("libpypy") || name.starts_with("pypy3");
        let library = name.strip_prefix("libpython").filter(|_| name.contains(".so"));
        let program = name.strip_prefix("python").filter(|rest| rest.chars().all(is_version));
        // An extension module: `_socket.cpython-313t-x86_64-linux-gnu.so`
        let module = name.split_once(".cpython-").map(|(_, rest)| rest);
        if let Some(rest) = library.or(program) {
            self.named = true;
            let (major, rest) = number(rest);
            let (minor, rest) = number(rest.strip_prefix('.').unwrap_or(""));
            self.version = major.zip(minor).or(self.version);
            self.free_threaded |= minor.is_some() && rest.starts_with('t');
            if deleted && library.is_some() {
                self.deleted = Some(path.to_owned());
            }
        } else if let Some(rest) = module {
            self.named = true;
            let (digits, rest) = number(rest);
            let version = digits.filter(|n| (30..1000).contains(n)).map(|n| match n < 100 {
                true => (n / 10, n % 10),
                false => (n / 100, n % 100),
            });
            self.version = self.version.or(version);
            self.free_threaded |= version.is_some() && rest.starts_with('t');
        }
    }
}

fn is_version(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | 't' | 'd' | 'm' | 'u')
}

fn number(text: &str) -> (Option<u32>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.parse().ok(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(paths: &[&str]) -> String {
        paths.iter().map(|p| format!("7f00-7f01 r-xp 00000000 08:01 12      {p}\n")).collect()
    }

    #[track_caller]
    fn version(exe: &str, paths: &[&str]) -> (Option<(u32, u32)>, bool) {
        let found = Interpreter::of(exe, &maps(paths));
        assert!(found.is_python());
        (found.version, found.free_threaded)
    }

    #[test]
    fn the_version_is_in_names() {
        assert_eq!(version("/usr/bin/python3.11", &[]), (Some((3, 11)), false));
        assert_eq!(version("/opt/app", &["/usr/lib/libpython3.12.so.1.0"]), (Some((3, 12)), false));
        assert_eq!(version("/usr/bin/python3.14t", &[]), (Some((3, 14)), true));
        assert_eq!(
            version("/usr/bin/python3", &["/l/_x.cpython-313t-x86_64-linux-gnu.so"]),
            (Some((3, 13)), true)
        );
        assert_eq!(
            version("/usr/bin/python3", &["/l/_x.cpython-39-x86_64-linux-gnu.so"]),
            (Some((3, 9)), false)
        );
        assert_eq!(version("/usr/bin/python", &[]), (None, false));
    }

    #[test]
    fn what_only_sounds_like_python_is_none() {
        for exe in ["/usr/bin/bash", "/usr/bin/pythonista", "/usr/bin/tini"] {
            assert!(!Interpreter::of(exe, &maps(&["/usr/lib/libboost_python311.so.1"])).is_python(), "{exe}");
        }
        assert!(!Interpreter::of("", "").is_python());
    }

    #[test]
    fn a_library_that_is_gone() {
        let found = Interpreter::of("/a/python3.11", &maps(&["/a/b c/libpython3.11.so.1.0 (deleted)"]));
        assert_eq!(found.deleted.as_deref(), Some("/a/b c/libpython3.11.so.1.0"));
        assert!(Interpreter::of("/usr/bin/python3.11 (deleted)", "").deleted.is_none());
    }

    #[test]
    fn musl_and_pypy() {
        let found = Interpreter::of("/usr/bin/python3.12", &maps(&["/lib/ld-musl-x86_64.so.1"]));
        assert!(found.musl && found.is_python());
        assert!(Interpreter::of("/opt/pypy3.10", &maps(&["/opt/libpypy3.10-c.so"])).pypy);
    }
}
