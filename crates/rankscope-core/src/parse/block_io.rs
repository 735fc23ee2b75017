//! Block I/O of a cgroup: io.stat (v2) and blkio.throttle.io_service_bytes (v1).

use std::collections::HashMap;

use super::{lines, number, tokens};

/// Bytes by one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBytes {
    pub major: u32,
    pub minor: u32,
    pub read: u64,
    pub write: u64,
}

fn device(token: &[u8]) -> Option<(u32, u32)> {
    let colon = token.iter().position(|b| *b == b':')?;
    let part = |t| number(t).and_then(|n| u32::try_from(n).ok());
    Some((part(&token[..colon])?, part(&token[colon + 1..])?))
}

/// v2: `8:0 rbytes=… wbytes=… rios=… …`. A line without a device or without rbytes is left out.
pub fn io_stat(text: &[u8], out: &mut Vec<DeviceBytes>) {
    out.clear();
    for (_, line) in lines(text) {
        let Some((major, minor)) = tokens(line).next().and_then(device) else { continue };
        let value = |key: &[u8]| tokens(line).find_map(|t| number(t.strip_prefix(key)?));
        if let (Some(read), Some(write)) = (value(b"rbytes="), value(b"wbytes=")) {
            out.push(DeviceBytes { major, minor, read, write });
        }
    }
}

/// v1: `8:0 Read …`, `8:0 Write …`, other operations, and a `Total` at the end.
pub fn io_service_bytes(text: &[u8], out: &mut Vec<DeviceBytes>) {
    out.clear();
    let mut known: HashMap<(u32, u32), usize> = HashMap::new();
    for (_, line) in lines(text) {
        let mut parts = tokens(line);
        let (Some(device), Some(operation), Some(bytes)) =
            (parts.next().and_then(device), parts.next(), parts.next().and_then(number))
        else {
            continue;
        };
        let at = *known.entry(device).or_insert_with(|| {
            out.push(DeviceBytes { major: device.0, minor: device.1, read: 0, write: 0 });
            out.len() - 1
        });
        match operation {
            b"Read" => out[at].read = bytes,
            b"Write" => out[at].write = bytes,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let mut out = Vec::new();
        io_stat(b"259:1 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0\n8:0 \nx y\n", &mut out);
        assert_eq!(out, [DeviceBytes { major: 259, minor: 1, read: 8192, write: 4096 }]);
        io_service_bytes(
            b"8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\n8:16 Read 1\nTotal 31\n",
            &mut out,
        );
        assert_eq!(out.len(), 2);
        assert_eq!((out[0].read, out[0].write, out[1].read, out[1].write), (10, 20, 1, 0));
    }
}
