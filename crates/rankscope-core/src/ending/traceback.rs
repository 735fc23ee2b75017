//! The Python traceback at the end of what a job printed. Of its message only what is known to hold no secret is kept.

const HEAD: &str = "Traceback (most recent call last):";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traceback {
    /// With its module: `torch.OutOfMemoryError`.
    pub exception: String,
    /// Innermost frame: `train.py:12 in main`.
    pub place: Option<String>,
    /// Where it was read: `--tee`, `TORCHELASTIC_ERROR_FILE`.
    pub source: String,
    pub is_cuda_oom: bool,
    /// `2.00 GiB`, as PyTorch says.
    pub tried_to_allocate: Option<String>,
    /// PyTorch's word for a worker that died of a full /dev/shm.
    pub tells_of_bus_error: bool,
}

impl Traceback {
    /// Of the last traceback in a text, if nothing but ordinary output follows it.
    pub fn last_in(text: &str, source: &str) -> Option<Traceback> {
        let start = text.rfind(HEAD)?;
        let mut frames = Vec::new();
        let mut lines = text[start + HEAD.len()..].lines().skip(1);
        let last = loop {
            // Frames are indented; the first line that is not tells the exception.
            let line = strip_prefix_of_rank(lines.next()?);
            match line.strip_prefix("  File \"") {
                Some(frame) => frames.push(frame),
                None if line.starts_with(' ') || line.trim().is_empty() => {}
                None => break line,
            }
        };
        let (exception, first) = last.split_once(": ").unwrap_or((last.trim_end_matches(':'), ""));
        if !is_name(exception) {
            return None;
        }
        let mut message = first.to_owned();
        // Messages of several lines: up to the next thing that Python itself prints.
        for line in lines.take_while(|l| !l.starts_with("During handling") && !l.starts_with(HEAD)).take(20) {
            message.push('\n');
            message.push_str(line);
        }
        Some(Traceback::new(exception, message.trim_end(), frames.last().and_then(|f| place(f)), source))
    }

    pub fn new(exception: &str, message: &str, place: Option<String>, source: &str) -> Traceback {
        let name = exception.rsplit('.').next().unwrap_or(exception);
        let first = message.lines().next().unwrap_or_default();
        let cuda = ["CUDA out of memory", "CUDA error: out of memory", "HIP out of memory"];
        let jax = first.starts_with("RESOURCE_EXHAUSTED");
        let torch = name == "OutOfMemoryError" && exception.contains("torch");
        Traceback {
            exception: exception.to_owned(),
            place,
            source: source.to_owned(),
            is_cuda_oom: torch || jax || cuda.iter().any(|words| message.contains(words)),
            tried_to_allocate: size_after(message, "Tried to allocate "),
            tells_of_bus_error: message.contains("killed by signal: Bus error")
                || message.contains("out of shared memory"),
        }
    }
}

fn size_after(message: &str, words: &str) -> Option<String> {
    let mut rest = message.split_once(words)?.1.split_whitespace();
    let number: f64 = rest.next()?.parse().ok()?;
    let unit = rest.next()?.trim_end_matches(['.', ',']);
    ["bytes", "KiB", "MiB", "GiB"].contains(&unit).then(|| format!("{number} {unit}"))
}

/// torchrun's `--tee` writes `[default0]:` before each line.
fn strip_prefix_of_rank(line: &str) -> &str {
    match line.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((rank, rest)) if rank.len() < 40 && !rank.contains(' ') => rest,
        _ => line,
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    !text.is_empty() && text.len() < 200 && text.chars().all(plain) && !text.starts_with(['.', '0'])
}

/// `/a/b/train.py", line 12, in main` → `train.py:12 in main`.
fn place(frame: &str) -> Option<String> {
    let (path, rest) = frame.split_once("\", line ")?;
    let (line, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    let line: u32 = line.trim().parse().ok()?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let function = function.trim();
    Some(match function.is_empty() {
        true => format!("{file}:{line}"),
        false => format!("{file}:{line} in {function}"),
    })
}
