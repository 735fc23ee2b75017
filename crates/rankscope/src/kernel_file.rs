//! A kernel file that is read again and again: opened once, read with pread into a buffer that is shared and reused.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rankscope_core::gap::{Gap, Measured};
use rankscope_core::parse::Malformed;
use rankscope_core::reading::Origin;
use rankscope_core::sample::Raw;

use crate::clock;
use crate::machine::{Machine, gap_of};

pub struct KernelFile {
    pub origin: Arc<Origin>,
    live: bool,
    file: Result<File, Gap>,
}

/// What all kernel files of a sampler are read into.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer(vec![0; 16 << 10])
    }
}

impl KernelFile {
    /// Opens the file now; when it can't be, every read gives the reason.
    pub fn open(machine: &Machine, origin: Origin) -> KernelFile {
        let file = machine.open(&origin.source).map_err(|e| gap_of(&origin.source, &e));
        KernelFile { origin: Arc::new(origin), live: machine.is_live(), file }
    }

    pub fn is_open(&self) -> bool {
        self.file.is_ok()
    }

    /// The present text. The kernel makes it anew for a read at offset 0, and gives all of it at once when it fits;
    /// only a text that comes close to a page may have more to come.
    pub fn read<'b>(&self, buffer: &'b mut Buffer) -> Measured<&'b [u8]> {
        let file = self.file.as_ref().map_err(Clone::clone)?;
        let bytes = &mut buffer.0;
        let mut filled = 0;
        loop {
            let n = file
                .read_at(&mut bytes[filled..], filled as u64)
                .map_err(|e| gap_of(&self.origin.source, &e))?;
            filled += n;
            if n == 0 || (n < 3 << 10 && filled < bytes.len()) {
                return Ok(&bytes[..filled]);
            }
            if filled == bytes.len() {
                if filled >= 16 << 20 {
                    return Err(Gap::broken(format!("{}: longer than 16 MiB", self.origin.source)));
                }
                bytes.resize(filled * 2, 0);
            }
        }
    }

    /// The present text, parsed; an odd text is `Broken` with file and line.
    pub fn parse<T>(
        &self,
        buffer: &mut Buffer,
        parse: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Measured<T> {
        parse(self.read(buffer)?).map_err(|odd| Gap::broken(format!("{}: {odd}", self.origin.source)))
    }

    pub fn raw<T>(&self, buffer: &mut Buffer, parse: impl FnOnce(&[u8]) -> Result<T, Malformed>) -> Raw<T> {
        self.made(self.parse(buffer, parse))
    }

    /// A value that was read just now, of this file.
    pub fn made<T>(&self, value: Measured<T>) -> Raw<T> {
        Raw { value, read_ns: self.live.then(clock::boottime_ns), origin: self.origin.clone() }
    }
}
