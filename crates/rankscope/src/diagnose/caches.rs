//! Caches of compiled code: where a process has them, and when they were last written. Time decides, not size.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use rankscope_core::diagnose::observations::{Cache, Missing};

use super::variables::Variables;
use crate::machine::Machine;

/// A cache can have very many files, and lie on a slow file system.
const MOST_ENTRIES: usize = 50_000;
const MOST_TIME: Duration = Duration::from_secs(3);

/// One cache to look at.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    kind: &'static str,
    path: String,
    disabled: bool,
    size_limit: Option<f64>,
}

/// The same as we reach it.
#[derive(Clone, Debug)]
struct Looked {
    path: String,
    /// Whether we may write says whether the job may.
    same_user: bool,
}

/// What a walk found.
#[derive(Default)]
struct Found {
    exists: bool,
    writable: Option<bool>,
    bytes: u64,
    newest: Option<SystemTime>,
    in_window: u32,
    /// Not all of it was looked at.
    cut: bool,
}

/// The caches of these processes, each once. `start`: of the window.
pub fn of(
    machine: &Machine,
    processes: &[(u32, &Variables)],
    start: SystemTime,
) -> (Vec<Cache>, Vec<Missing>) {
    let mut wanted: BTreeMap<String, (Place, Looked)> = BTreeMap::new();
    for (pid, variables) in processes {
        let root = match machine.namespace(&pid.to_string(), "mnt") {
            Some(theirs) if Some(theirs) != machine.namespace("self", "mnt") => format!("/proc/{pid}/root"),
            _ => String::new(),
        };
        let same_user = is_ours(*pid);
        for place in places(variables, &user_of(machine, *pid, variables)) {
            let path = format!("{root}{}", place.path);
            let key = format!("{}{path}", place.kind);
            wanted.entry(key).or_insert((place, Looked { path, same_user }));
        }
    }
    let (send, receive) = mpsc::channel();
    let list: Vec<(Place, Looked)> = wanted.into_values().collect();
    let asked = list.clone();
    // On a thread of its own: a file system that hangs must not keep the rest back.
    let walker = std::thread::Builder::new().name("rankscope-caches".to_owned()).spawn(move || {
        for (place, seen) in asked {
            let mut found = walk(Path::new(&seen.path), start);
            found.writable = seen.same_user.then(|| is_writable(Path::new(&seen.path)));
            if send.send((place, found)).is_err() {
                break;
            }
        }
    });
    let mut missing = Vec::new();
    let mut caches = Vec::new();
    let end = Instant::now() + MOST_TIME * 2;
    while let Ok((place, found)) = receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
        if found.cut {
            missing.push(gap(
                &place,
                "has too many files to look at all of them: what is said of it is of a part",
            ));
        }
        caches.push(cache(place, &found, start));
    }
    let late = list.iter().skip(caches.len());
    missing.extend(late.map(|(place, _)| gap(place, "its file system does not answer")));
    drop(walker);
    (caches, missing)
}

fn gap(place: &Place, why: &str) -> Missing {
    Missing { what: format!("caches.{}", place.kind), reason: format!("{}: {why}", place.path), remedy: None }
}

fn cache(place: Place, found: &Found, start: SystemTime) -> Cache {
    let seconds = |time: SystemTime| match time.duration_since(start) {
        Ok(after) => after.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    };
    Cache {
        kind: place.kind.to_owned(),
        path: place.path,
        exists: found.exists,
        writable: found.writable,
        disabled: place.disabled,
        size: found.exists.then_some((found.bytes as f64 / 1e6) as f32),
        size_limit: place.size_limit.map(|bytes| (bytes / 1e6) as f32),
        newest_write_s: found.newest.map(seconds),
        written_in_window: found.in_window,
    }
}

/// The defaults are those of each program.
fn places(v: &Variables, user: &str) -> Vec<Place> {
    let home = v.get("HOME").map(str::to_owned);
    let below_home = |path: &str| home.as_ref().map(|home| format!("{}/{path}", home.trim_end_matches('/')));
    let off = |name: &str| v.get(name).is_some_and(|value| !matches!(value, "0" | "false" | "False"));
    let temporary = v.get("TMPDIR").unwrap_or("/tmp").trim_end_matches('/');
    let place = |kind, path: Option<String>, disabled| {
        path.filter(|p| p.starts_with('/')).map(|path| Place { kind, path, disabled, size_limit: None })
    };
    let given = |name: &str| v.get(name).map(str::to_owned);
    let cuda = place(
        "cuda",
        given("CUDA_CACHE_PATH").or_else(|| below_home(".nv/ComputeCache")),
        off("CUDA_CACHE_DISABLE"),
    );
    // Its default differs from version to version.
    let limit = v.get("CUDA_CACHE_MAXSIZE").and_then(|text| text.parse().ok());
    let cuda = cuda.map(|place| Place { size_limit: limit, ..place });
    let triton_home = v.get("TRITON_HOME").map(|dir| format!("{}/.triton/cache", dir.trim_end_matches('/')));
    let triton = given("TRITON_CACHE_DIR").or(triton_home).or_else(|| below_home(".triton/cache"));
    let inductor =
        given("TORCHINDUCTOR_CACHE_DIR").unwrap_or_else(|| format!("{temporary}/torchinductor_{user}"));
    // JAX keeps none unless it is told where; XLA may be told to write what it compiles.
    let dump = v.get("XLA_FLAGS").and_then(|flags| {
        flags.split_whitespace().find_map(|flag| flag.strip_prefix("--xla_dump_to=")).map(str::to_owned)
    });
    let jax = given("JAX_COMPILATION_CACHE_DIR").or(dump);
    let jax_off =
        v.get("JAX_ENABLE_COMPILATION_CACHE").is_some_and(|value| matches!(value, "0" | "false" | "False"));
    [
        cuda,
        place("triton", triton, false),
        place("inductor", Some(inductor), off("TORCHINDUCTOR_FORCE_DISABLE_CACHES")),
        place("xla", jax, jax_off),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// As getpass.getuser() finds it, which names the directory of inductor.
fn user_of(machine: &Machine, pid: u32, variables: &Variables) -> String {
    if let Some(user) = variables.get("USER") {
        return user.to_owned();
    }
    let status = machine.read(&format!("/proc/{pid}/status")).unwrap_or_default();
    let [uid] = rankscope_core::parse::keyed::lookup(&status, ["Uid:"]);
    let uid = uid.value().unwrap_or(0).to_string();
    let passwd = machine.read(&format!("/proc/{pid}/root/etc/passwd")).unwrap_or_default();
    let passwd = String::from_utf8_lossy(&passwd);
    let names = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    names.into_iter().next().unwrap_or(uid)
}

fn walk(root: &Path, start: SystemTime) -> Found {
    let mut found = Found::default();
    let until = Instant::now() + MOST_TIME;
    let Ok(meta) = std::fs::metadata(root) else {
        return found;
    };
    found.exists = meta.is_dir();
    let (mut folders, mut entries) = (vec![root.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MOST_ENTRIES || Instant::now() >= until {
                found.cut = true;
                return found;
            }
            // Of the link itself: one may lead out, or round in circles.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
                continue;
            }
            found.bytes += meta.len();
            let Ok(modified) = meta.modified() else { continue };
            found.newest = found.newest.max(Some(modified));
            found.in_window += u32::from(modified >= start);
        }
    }
    found
}

fn is_ours(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: geteuid has no preconditions and cannot fail.
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == unsafe { libc::geteuid() })
}

/// One that is not there yet is made in the nearest folder that is.
fn is_writable(path: &Path) -> bool {
    let nearest = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    let Ok(path) = std::ffi::CString::new(nearest.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: the path ends with NUL.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environ: &str) -> Vec<Place> {
        places(&Variables::of_text(environ), "me")
    }

    #[test]
    fn where_they_are() {
        let paths = |environ: &str| of(environ).into_iter().map(|p| (p.kind, p.path)).collect::<Vec<_>>();
        let all = |list: &[(&'static str, &str)]| {
            list.iter().map(|(k, p)| (*k, (*p).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(
            paths("HOME=/root/"),
            all(&[
                ("cuda", "/root/.nv/ComputeCache"),
                ("triton", "/root/.triton/cache"),
                ("inductor", "/tmp/torchinductor_me")
            ])
        );
        assert_eq!(
            paths(
                "CUDA_CACHE_PATH=/c TRITON_HOME=/t TORCHINDUCTOR_CACHE_DIR=/i JAX_COMPILATION_CACHE_DIR=/x"
            ),
            all(&[("cuda", "/c"), ("triton", "/t/.triton/cache"), ("inductor", "/i"), ("xla", "/x")])
        );
        assert_eq!(paths("JAX_COMPILATION_CACHE_DIR=gs://bucket").len(), 1);
        let off = of("CUDA_CACHE_PATH=/c CUDA_CACHE_DISABLE=1 CUDA_CACHE_MAXSIZE=33554432");
        assert_eq!((off[0].disabled, off[0].size_limit), (true, Some(33_554_432.0)));
    }

    #[test]
    fn a_write_in_the_window_and_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("old"), b"12345").unwrap();
        let now = SystemTime::now();
        let before = walk(dir.path(), now + Duration::from_secs(60));
        assert_eq!((before.exists, before.bytes, before.in_window, before.cut), (true, 5, 0, false));
        let after = walk(dir.path(), now - Duration::from_secs(60));
        assert_eq!(after.in_window, 1);
        let place = Place { kind: "cuda", path: "/x".into(), disabled: false, size_limit: None };
        let told = cache(place, &before, now + Duration::from_secs(60));
        assert!(told.newest_write_s.is_some_and(|s| s < -50.0));
        assert!(!walk(&dir.path().join("none"), now).exists);
    }
}
