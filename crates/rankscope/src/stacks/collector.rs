//! Whether an interpreter collects garbage at a moment: one `int` of its state, which py-spy does not look at.

use py_spy::PythonSpy;
use remoteprocess::ProcessMemory;

/// Of `gc.collecting` in `PyInterpreterState`, a minor version each from 3.9 on: in a release series the layout stays as
/// it is. Of 64 bits. Before 3.9 all interpreters shared one collector.
const OFFSETS: [usize; 7] = [816, 816, 848, 312, 7600, 7600, 7512];
const FIRST_MINOR: u64 = 9;

/// `None`: this version does not say so, or its memory can't be read.
pub fn collects(spy: &PythonSpy) -> Option<bool> {
    let minor =
        spy.version.minor.checked_sub(FIRST_MINOR).filter(|_| spy.version.major == 3 && usize::BITS == 64)?;
    let offset = OFFSETS.get(usize::try_from(minor).ok()?)?;
    let address = spy.addresses.interpreter_address.checked_add(*offset)?;
    let collecting: i32 = spy.process.copy_struct(address).ok()?;
    match collecting {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
