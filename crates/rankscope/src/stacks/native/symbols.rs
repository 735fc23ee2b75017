//! Functions of an ELF file, by their place in it. Only the tables are read, whatever the size of the file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use goblin::container::Ctx;
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::section_header::{SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{STT_FUNC, STT_GNU_IFUNC};
use goblin::elf::{Elf, ProgramHeader, SectionHeader, Symtab};

/// Bytes: 350,000 symbols. To sort more would cost more than all readings together.
const MAX_TABLE: u64 = 8 << 20;
const MAX_HEADERS: u64 = 1 << 20;
const MAX_NAME: usize = 200;

pub struct Symbols {
    file: File,
    /// In order: address, size, and where the name begins in the file.
    functions: Vec<(u64, u64, u64)>,
    loaded: Vec<ProgramHeader>,
}

impl Symbols {
    pub fn of(file: File) -> Option<Symbols> {
        let header = Elf::parse_header(&read(&file, 0, 64)?).ok()?;
        let context = Ctx::new(header.container().ok()?, header.endianness().ok()?);
        let table = |offset: u64, size: u16, count: u16| {
            read(&file, offset, (u64::from(size) * u64::from(count)).min(MAX_HEADERS))
        };
        let bytes = table(header.e_phoff, header.e_phentsize, header.e_phnum)?;
        let loaded = ProgramHeader::parse(&bytes, 0, header.e_phnum.into(), context).ok()?;
        let loaded = loaded.into_iter().filter(|part| part.p_type == PT_LOAD).collect();
        let bytes = table(header.e_shoff, header.e_shentsize, header.e_shnum)?;
        let sections = SectionHeader::parse_from(&bytes, 0, header.e_shnum.into(), context).ok()?;
        let functions = [SHT_SYMTAB, SHT_DYNSYM]
            .into_iter()
            .find_map(|kind| functions(&file, &sections, kind, context))
            .filter(|functions| !functions.is_empty())?;
        Some(Symbols { file, functions, loaded })
    }

    /// `offset`: in the file. `None`: no symbol covers it.
    pub fn at(&self, offset: u64) -> Option<String> {
        let part =
            self.loaded.iter().find(|p| offset.checked_sub(p.p_offset).is_some_and(|o| o < p.p_filesz))?;
        let address = (offset - part.p_offset).checked_add(part.p_vaddr)?;
        let after = self.functions.partition_point(|function| function.0 <= address);
        let (start, size, name) = *self.functions.get(after.checked_sub(1)?)?;
        if address - start >= size {
            return None;
        }
        let mut bytes = [0u8; MAX_NAME];
        let length = self.file.read_at(&mut bytes, name).ok()?;
        let name = bytes.get(..length)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }
}

fn functions(
    file: &File,
    sections: &[SectionHeader],
    kind: u32,
    context: Ctx,
) -> Option<Vec<(u64, u64, u64)>> {
    let table = sections.iter().find(|section| section.sh_type == kind)?;
    let names = sections.get(usize::try_from(table.sh_link).ok()?)?.sh_offset;
    if table.sh_size > MAX_TABLE || table.sh_entsize == 0 {
        return None;
    }
    let bytes = read(file, table.sh_offset, table.sh_size)?;
    let count = usize::try_from(table.sh_size / table.sh_entsize).ok()?;
    let symbols = Symtab::parse(&bytes, 0, count, context).ok()?;
    let mut functions: Vec<(u64, u64, u64)> = symbols
        .iter()
        .filter(|s| matches!(s.st_type(), STT_FUNC | STT_GNU_IFUNC) && s.st_value != 0 && s.st_size != 0)
        .filter_map(|s| Some((s.st_value, s.st_size, names.checked_add(u64::try_from(s.st_name).ok()?)?)))
        .collect();
    functions.sort_unstable();
    Some(functions)
}

fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_ours() {
        let file = File::open(std::env::current_exe().expect("our file")).expect("it can be read");
        let symbols = Symbols::of(file).expect("symbols");
        let (start, _, _) = symbols.functions[symbols.functions.len() / 2];
        let part = symbols.loaded.iter().find(|p| (p.p_vaddr..p.p_vaddr + p.p_memsz).contains(&start));
        let part = part.expect("it is loaded");
        let name = symbols.at(start - part.p_vaddr + part.p_offset).expect("a name");
        assert!(!name.is_empty());
        assert_eq!(symbols.at(u64::MAX), None);
    }

    #[test]
    fn what_is_no_such_file() {
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, &[0x7f; 4096]).expect("written");
        assert!(Symbols::of(file).is_none());
    }
}
