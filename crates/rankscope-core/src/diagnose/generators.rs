//! Which functions of a Python source are generators: those with a `yield` of their own.

/// A function's lines, the innermost after those around it.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    first: u32,
    last: u32,
    indent: usize,
    yields: bool,
    /// Made a context manager by its decorator: it yields once, and to nobody who iterates.
    manages: bool,
}

/// Of one source file.
#[derive(Debug, Default)]
pub struct Functions(Vec<Function>);

impl Functions {
    /// Of a text that need not be Python at all.
    pub fn of(source: &[u8]) -> Functions {
        let mut reader = Reader { source, at: 0, line: 1 };
        let (mut open, mut done): (Vec<Function>, Vec<Function>) = (Vec::new(), Vec::new());
        let mut manages = false;
        while let Some(line) = reader.logical_line() {
            while let Some(function) = open.pop_if(|f| line.indent <= f.indent) {
                done.push(Function { last: line.first - 1, ..function });
            }
            if line.defines {
                let (first, last, indent) = (line.first, line.first, line.indent);
                open.push(Function { first, last, indent, yields: false, manages });
            }
            manages = line.decorates && (manages || line.manages);
            if let Some(inner) = open.last_mut() {
                inner.yields |= line.yields;
            }
        }
        let last = reader.line;
        done.extend(open.into_iter().map(|function| Function { last, ..function }));
        Functions(done)
    }

    /// Whether the innermost function around a line is one; `None`: the line is in none.
    pub fn is_generator(&self, line: u32) -> Option<bool> {
        let around = self.0.iter().filter(|f| (f.first..=f.last).contains(&line));
        around.max_by_key(|f| f.first).map(|f| f.yields && !f.manages)
    }
}

/// What one statement's line says, over all lines that it takes.
#[derive(Default)]
struct Line {
    first: u32,
    indent: usize,
    defines: bool,
    yields: bool,
    decorates: bool,
    manages: bool,
}

struct Reader<'a> {
    source: &'a [u8],
    at: usize,
    line: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        self.line = self.line.saturating_add(u32::from(byte == b'\n'));
        Some(byte)
    }

    /// The next one that is not empty.
    fn logical_line(&mut self) -> Option<Line> {
        let mut line = Line::default();
        let (mut words, mut depth) = (0, 0_usize);
        let mut begun = false;
        loop {
            let Some(byte) = self.peek() else { return begun.then_some(line) };
            if !begun {
                match byte {
                    b' ' => line.indent += 1,
                    b'\t' => line.indent = (line.indent / 8 + 1) * 8,
                    b'\n' | b'\r' | 0x0c => line.indent = 0,
                    b'#' => self.skip_comment(),
                    _ => (begun, line.first) = (true, self.line),
                }
                if !begun {
                    if byte != b'#' {
                        self.next();
                    }
                    continue;
                }
            }
            match byte {
                b'\n' if depth == 0 => {
                    self.next();
                    return Some(line);
                }
                b'#' => self.skip_comment(),
                b'\\' => {
                    self.next();
                    self.next();
                }
                b'"' | b'\'' => self.skip_string(),
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    self.next();
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.next();
                }
                b'@' if words == 0 => {
                    line.decorates = true;
                    self.next();
                }
                _ if is_of_a_name(byte) => {
                    match (self.name(), words) {
                        (b"def", 0) => line.defines = true,
                        (b"async", 0) => continue,
                        (b"yield", _) => line.yields = true,
                        (b"contextmanager" | b"asynccontextmanager", _) => line.manages = true,
                        _ => {}
                    }
                    words += 1;
                }
                _ => {
                    self.next();
                }
            }
        }
    }

    fn name(&mut self) -> &[u8] {
        let from = self.at;
        while self.peek().is_some_and(is_of_a_name) {
            self.at += 1;
        }
        &self.source[from..self.at]
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// From its first quote to its last.
    fn skip_string(&mut self) {
        let Some(quote) = self.next() else { return };
        let triple = self.source.get(self.at..self.at + 2) == Some(&[quote, quote]);
        if triple {
            self.at += 2;
        }
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => {
                    self.next();
                }
                // It was not closed.
                b'\n' if !triple => return,
                byte if byte == quote && !triple => return,
                byte if byte == quote && self.source.get(self.at..self.at + 2) == Some(&[quote, quote]) => {
                    self.at += 2;
                    return;
                }
                _ => {}
            }
        }
    }
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"import csv
def rows(path):
    """No yield
def here(): yield"""
    for row in csv.reader(open(path)):
        yield [
            float(cell)
            for cell in row
        ]

class Loader:
    async def batches(self):
        async for row in self.rows:  # yield
            text = "yield" 'it\'s' f'{row}'
            yield (yield_of(row),
  text)

    def plain(self):
        def inner(): yield 1
        return list(inner())

@contextlib.contextmanager
def timed(name):
    yield
	
def after(
    a, b,
):
    return a + \
b
"#;

    #[test]
    fn a_function_is_a_generator_by_its_own_yield() {
        let functions = Functions::of(SOURCE.as_bytes());
        let line =
            |text: &str| SOURCE.lines().position(|line| line.contains(text)).map(|at| at as u32 + 1).unwrap();
        let is = |text: &str| functions.is_generator(line(text));
        assert_eq!(is("import csv"), None);
        assert_eq!(is("float(cell)"), Some(true));
        assert_eq!(is("yield_of(row)"), Some(true));
        assert_eq!(is("  text)"), Some(true));
        assert_eq!(is("return list(inner())"), Some(false));
        assert_eq!(is("def inner(): yield 1"), Some(true));
        assert_eq!(functions.is_generator(line("def timed") + 1), Some(false));
        assert_eq!(is("return a + "), Some(false));
        assert_eq!(functions.is_generator(0), None);
    }

    const ODD: &[u8] = b"de f():'\"\\\n\t#@yield[]{}\xff\0";

    #[test]
    fn what_is_no_python_is_read_to_its_end() {
        for odd in [
            "",
            "\\",
            "'",
            "\"\"\"",
            "def",
            "def f(",
            "@",
            "def f():\n\tyield\n  \\\n#",
            "((((\n)))))def x",
            "é = 'ü",
        ] {
            Functions::of(odd.as_bytes());
        }
        let mut bytes = Vec::new();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push(ODD[(state >> 24) as usize % ODD.len()]);
        }
        Functions::of(&bytes).is_generator(7);
    }
}
