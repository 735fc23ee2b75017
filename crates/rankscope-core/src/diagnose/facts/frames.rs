//! What the interpreter's own modules on a stack say about a wait. Only the standard library is recognised here, by its
//! place on disk and its modules' names: what a program calls its functions and files means nothing.

use super::super::observations::Frame;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Data,
    Lock,
    Socket,
    Child,
    Events,
}

/// The module's path below the library's folder; `None`: not the standard library's.
pub fn stdlib(file: &str) -> Option<&str> {
    if let Some(frozen) = file.strip_prefix("<frozen ") {
        return Some(frozen.trim_end_matches('>'));
    }
    // …/lib/python3.12/queue.py, …/lib/python313.zip/queue.py; never what lies in the folders for packages.
    let (_, rest) = ["/lib/python3", "/lib64/python3"].iter().find_map(|lib| file.rsplit_once(lib))?;
    let (version, module) = rest.split_once('/')?;
    let digits = version.trim_start_matches('.').trim_end_matches(".zip").trim_end_matches('t');
    let numbered = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let packaged = module.starts_with("site-packages/") || module.starts_with("dist-packages/");
    (numbered && !packaged).then_some(module)
}

/// The first frame of a process that multiprocessing made.
pub fn begins_a_fork(frame: &Frame) -> bool {
    stdlib(&frame.file) == Some("multiprocessing/process.py") && name(&frame.function) == "_bootstrap"
}

/// The main function of a process that multiprocessing keeps for itself.
pub fn serves(frame: &Frame) -> bool {
    let own = ["multiprocessing/resource_tracker.py", "multiprocessing/forkserver.py"];
    name(&frame.function) == "main" && stdlib(&frame.file).is_some_and(|module| own.contains(&module))
}

/// `<lambda>`, `<genexpr>` and the like.
pub fn is_nameless(frame: &Frame) -> bool {
    name(&frame.function).starts_with('<')
}

/// Frames of the interpreter at the leaf's end: (module, function).
fn leaf_chain<'a>(stack: &'a [&Frame]) -> impl Iterator<Item = (&'a str, &'a str)> {
    stack.iter().map_while(|f| Some((stdlib(&f.file)?, name(&f.function))))
}

/// Without the class that newer interpreters put before it.
fn name(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or(function)
}

/// What the interpreter waits for at the leaf, if it does. The outermost module that says so decides: a queue waits in
/// a condition, a connection in a selector.
pub fn wait(stack: &[&Frame]) -> Option<Wait> {
    leaf_chain(stack).filter_map(|(module, function)| wait_of(module, function)).last()
}

fn wait_of(module: &str, function: &str) -> Option<Wait> {
    let is = |names: &[&str]| names.contains(&function);
    match module {
        "queue.py" | "multiprocessing/queues.py" => match function {
            "get" => Some(Wait::Data),
            "put" | "join" => Some(Wait::Lock),
            _ => None,
        },
        // A lock that a manager keeps is asked for over a connection.
        "multiprocessing/managers.py" if is(&["acquire", "__enter__", "wait", "wait_for", "join"]) => {
            Some(Wait::Lock)
        }
        "multiprocessing/connection.py" | "multiprocessing/pool.py" | "multiprocessing/managers.py"
            if is(&[
                "wait",
                "poll",
                "_poll",
                "recv",
                "recv_bytes",
                "_recv",
                "_recv_bytes",
                "get",
                "next",
                "_callmethod",
            ]) =>
        {
            Some(Wait::Data)
        }
        "concurrent/futures/_base.py"
            if is(&["result", "exception", "wait", "as_completed", "result_iterator"]) =>
        {
            Some(Wait::Data)
        }
        "threading.py"
            if is(&["wait", "wait_for", "acquire", "join", "_wait_for_tstate_lock", "__enter__"]) =>
        {
            Some(Wait::Lock)
        }
        "multiprocessing/synchronize.py" => Some(Wait::Lock),
        "multiprocessing/popen_fork.py" if is(&["poll", "wait"]) => Some(Wait::Child),
        "multiprocessing/process.py" if function == "join" => Some(Wait::Child),
        "subprocess.py"
            if is(&["wait", "_wait", "_try_wait", "communicate", "_communicate", "call", "run"]) =>
        {
            Some(Wait::Child)
        }
        "socket.py" | "multiprocessing/connection.py" if is(&["accept", "_accept"]) => Some(Wait::Events),
        "socket.py" | "ssl.py" | "http/client.py" | "ftplib.py" => Some(Wait::Socket),
        "selectors.py" if is(&["select", "poll"]) => Some(Wait::Events),
        "asyncio/base_events.py" | "socketserver.py" | "code.py" | "cmd.py" | "codeop.py" | "sched.py" => {
            Some(Wait::Events)
        }
        _ => None,
    }
}

/// An import is under way: its machinery is on the stack, and nothing called it from the code that it ran.
pub fn imports(stack: &[&Frame]) -> bool {
    stack.iter().filter_map(|f| stdlib(&f.file)).any(|m| m.starts_with("importlib._bootstrap"))
}

/// A process is being started.
pub fn spawns(stack: &[&Frame]) -> bool {
    leaf_chain(stack).any(|(module, function)| match module {
        "multiprocessing/popen_fork.py"
        | "multiprocessing/popen_spawn_posix.py"
        | "multiprocessing/popen_forkserver.py" => matches!(function, "_launch" | "__init__"),
        "multiprocessing/process.py" => function == "start",
        "subprocess.py" => function == "_execute_child",
        _ => false,
    })
}

/// An iterator of the program makes its next element: the language's protocol is on the stack.
pub fn iterates(stack: &[&Frame]) -> bool {
    stack
        .iter()
        .filter(|f| stdlib(&f.file).is_none())
        .any(|f| matches!(name(&f.function), "__next__" | "__iter__" | "__getitem__" | "__getitems__"))
}

/// Native code of the driver that compiles for the GPU: the driver's library, not the program's.
pub fn compiles(stack: &[&Frame]) -> bool {
    const LIBRARIES: &[&str] =
        &["libnvidia-ptxjitcompiler.so", "libnvidia-nvvm.so", "libnvrtc.so", "libnvptxcompiler"];
    stack.iter().any(|f| {
        let file = f.file.rsplit('/').next().unwrap_or_default();
        LIBRARIES.iter().any(|library| file.starts_with(library))
    })
}

/// `function (package/file.py:12)`, short enough for a line and without what a user's folders are called.
pub fn words(frame: &Frame) -> String {
    format!("`{}` ({}:{})", frame.function, short(&frame.file), frame.line)
}

/// `` `function` (library.so, native) ``, or `` `library.so` (native) ``.
pub fn native_words(frame: &Frame) -> String {
    let library = frame.file.rsplit('/').next().unwrap_or(&frame.file);
    match frame.function == library {
        true => format!("`{library}` (native)"),
        false => format!("`{}` ({library}, native)", frame.function),
    }
}

pub fn short(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(folder) {
            return &file[at + folder.len()..];
        }
    }
    if let Some(module) = stdlib(file) {
        return module;
    }
    let mut slashes = file.rmatch_indices('/').map(|(at, _)| at);
    slashes.nth(1).map_or(file, |at| &file[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_library_or_the_library_alone() {
        let frame =
            |function: &str| Frame { function: function.into(), file: "/usr/lib/libz.so.1".into(), line: 0 };
        assert_eq!(native_words(&frame("deflate")), "`deflate` (libz.so.1, native)");
        assert_eq!(native_words(&frame("libz.so.1")), "`libz.so.1` (native)");
    }

    #[test]
    fn the_standard_library_by_its_place() {
        for (file, module) in [
            ("/usr/lib/python3.11/queue.py", Some("queue.py")),
            (
                "/root/.local/share/uv/python/cpython-3.13.1t-linux/lib/python3.13t/multiprocessing/pool.py",
                Some("multiprocessing/pool.py"),
            ),
            ("/opt/lib/python313.zip/queue.py", Some("queue.py")),
            ("<frozen importlib._bootstrap>", Some("importlib._bootstrap")),
            ("/usr/lib/python3.11/site-packages/torch/queue.py", None),
            ("/usr/lib/python3/dist-packages/queue.py", None),
            ("/home/me/lib/python3/queue.py", None),
            ("/app/queue.py", None),
            ("queue.py", None),
            ("<string>", None),
        ] {
            assert_eq!(stdlib(file), module, "{file}");
        }
    }

    fn frame(function: &str, file: &str) -> Frame {
        Frame { function: function.into(), file: file.into(), line: 1 }
    }

    #[test]
    fn a_wait_is_named_by_the_outermost_module_of_the_library() {
        let lib = |module: &str| format!("/usr/lib/python3.12/{module}");
        let condition = frame("Condition.wait", &lib("threading.py"));
        let queue = frame("Queue.get", &lib("queue.py"));
        let own = frame("get", "/app/queue.py");
        assert_eq!(wait(&[&condition, &queue, &own]), Some(Wait::Data));
        assert_eq!(wait(&[&condition, &own]), Some(Wait::Lock));
        assert_eq!(wait(&[&own, &condition, &queue]), None, "the program's own code runs");
        let select = frame("_PollLikeSelector.select", &lib("selectors.py"));
        let communicate = frame("Popen.communicate", &lib("subprocess.py"));
        assert_eq!(wait(&[&select, &communicate, &own]), Some(Wait::Child));
        assert_eq!(wait(&[&select]), Some(Wait::Events));
        let received = frame("Connection.recv", &lib("multiprocessing/connection.py"));
        let asked = frame("BaseProxy._callmethod", &lib("multiprocessing/managers.py"));
        let entered = frame("AcquirerProxy.__enter__", &lib("multiprocessing/managers.py"));
        assert_eq!(wait(&[&received, &asked, &own]), Some(Wait::Data));
        assert_eq!(wait(&[&received, &asked, &entered, &own]), Some(Wait::Lock));
    }

    #[test]
    fn what_a_user_calls_things_is_no_sign() {
        let own =
            ["importlib", "_launch", "compile", "ptxas"].map(|name| frame(name, "/app/importlib._bootstrap"));
        let stack: Vec<&Frame> = own.iter().collect();
        assert!(!imports(&stack) && !spawns(&stack) && !compiles(&stack) && !iterates(&stack));
        assert_eq!(wait(&stack), None);
    }

    #[test]
    fn files_are_shown_from_the_package_on() {
        for (file, shown) in [
            ("/opt/conda/lib/python3.11/site-packages/torch/utils/data.py", "torch/utils/data.py"),
            ("/usr/lib/python3.11/multiprocessing/pool.py", "multiprocessing/pool.py"),
            ("/home/somebody/project/src/train.py", "src/train.py"),
            ("train.py", "train.py"),
        ] {
            assert_eq!(short(file), shown);
        }
    }
}
