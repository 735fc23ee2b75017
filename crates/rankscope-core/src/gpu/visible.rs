//! What CUDA_VISIBLE_DEVICES leaves, by the rules of the CUDA programming guide.

/// A device that CUDA could be given: a GPU, or an instance of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub uuid: String,
    /// Model of the GPU.
    pub name: String,
    /// UUIDs of its instances; CUDA then sees these and not the GPU.
    pub instances: Vec<String>,
}

/// What CUDA will see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// UUIDs in CUDA's order.
    pub uuids: Vec<String>,
    /// The order, or which ones, could be otherwise.
    pub unsure: Option<&'static str>,
}

const ORDER: &str = "CUDA orders GPUs of several models by speed unless CUDA_DEVICE_ORDER=PCI_BUS_ID";
const ONE_INSTANCE: &str = "a process sees one MIG instance, the first";

/// `list`: the variable as it stands, `None` where it isn't set; `order`: CUDA_DEVICE_ORDER. `devices`: in the order of
/// the bus, as NVML has them.
pub fn visible(list: Option<&str>, order: Option<&str>, devices: &[Device]) -> Visible {
    let mixed = devices.iter().any(|d| d.name != devices[0].name);
    let by_speed = mixed && order != Some("PCI_BUS_ID");
    let Some(list) = list else {
        let instances: Vec<&String> = devices.iter().flat_map(|d| &d.instances).collect();
        if let Some(first) = instances.first() {
            let unsure = (instances.len() > 1).then_some(ONE_INSTANCE);
            return Visible { uuids: vec![(*first).clone()], unsure };
        }
        let uuids = devices.iter().map(|d| d.uuid.clone()).collect();
        return Visible { uuids, unsure: by_speed.then_some(ORDER) };
    };
    let mut seen = Visible::default();
    for entry in list.split(',').map(str::trim) {
        // The first that names nothing ends the list.
        let Some((uuid, by_index)) = named(entry, devices) else { break };
        if seen.uuids.contains(&uuid) {
            // The same one twice: CUDA then gives none at all.
            return Visible::default();
        }
        if by_index && by_speed {
            seen.unsure = Some(ORDER);
        }
        seen.uuids.push(uuid);
    }
    // One instance at most, and not beside GPUs.
    if seen.uuids.len() > 1 && seen.uuids.iter().any(|u| u.starts_with("MIG-")) {
        seen.uuids.truncate(1);
        seen.unsure = Some(ONE_INSTANCE);
    }
    seen
}

/// UUID of the device that an entry names, and whether by its index.
fn named(entry: &str, devices: &[Device]) -> Option<(String, bool)> {
    if !entry.is_empty() && entry.bytes().all(|b| b.is_ascii_digit()) {
        let device = devices.get(entry.parse::<usize>().ok()?)?;
        let uuid = device.instances.first().unwrap_or(&device.uuid);
        return Some((uuid.clone(), true));
    }
    if !entry.starts_with("GPU-") && !entry.starts_with("MIG-") {
        return None;
    }
    // The beginning of a UUID is enough when it fits one alone.
    let all = devices.iter().flat_map(|d| std::iter::once(&d.uuid).chain(&d.instances));
    let mut fitting = all.filter(|uuid| uuid.starts_with(entry));
    let only = fitting.next()?;
    fitting.next().is_none().then(|| (only.clone(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(names: &[&str]) -> Vec<Device> {
        let one = |(at, name): (usize, &&str)| Device {
            uuid: format!("GPU-{at}aaa-bbbb"),
            name: (*name).to_owned(),
            instances: Vec::new(),
        };
        names.iter().enumerate().map(one).collect()
    }

    fn seen(list: Option<&str>) -> Vec<String> {
        let numbers = |u: &String| u[4..5].to_owned();
        visible(list, None, &devices(&["H100"; 4])).uuids.iter().map(numbers).collect()
    }

    #[test]
    fn lists() {
        assert_eq!(seen(None), ["0", "1", "2", "3"]);
        assert_eq!(seen(Some("")), Vec::<String>::new());
        assert_eq!(seen(Some("2,0")), ["2", "0"]);
        assert_eq!(seen(Some("1,-1,2")), ["1"], "what is no device ends the list");
        assert_eq!(seen(Some("0,9,1")), ["0"]);
        assert_eq!(seen(Some("NoDevFiles")), Vec::<String>::new());
        assert_eq!(seen(Some("1,1")), Vec::<String>::new());
        assert_eq!(seen(Some("GPU-3aaa, 1")), ["3", "1"]);
        assert_eq!(seen(Some("GPU-")), Vec::<String>::new(), "fits more than one");
        assert_eq!(visible(Some("0"), None, &[]), Visible::default());
    }

    #[test]
    fn order_of_several_models() {
        let mixed = devices(&["T4", "H100"]);
        assert!(visible(Some("0"), None, &mixed).unsure.is_some());
        assert!(visible(Some("0"), Some("PCI_BUS_ID"), &mixed).unsure.is_none());
        assert!(visible(Some("GPU-1"), None, &mixed).unsure.is_none());
        assert!(visible(Some("0"), None, &devices(&["H100", "H100"])).unsure.is_none());
    }

    #[test]
    fn instances() {
        let mut devices = devices(&["A100"]);
        devices[0].instances = vec!["MIG-5f9e".into(), "MIG-77aa".into()];
        assert_eq!(visible(Some("MIG-77aa"), None, &devices).uuids, ["MIG-77aa"]);
        let all = visible(None, None, &devices);
        assert_eq!((all.uuids.len(), all.unsure.is_some()), (1, true));
        assert_eq!(visible(Some("MIG-5f9e,MIG-77aa"), None, &devices).uuids, ["MIG-5f9e"]);
    }
}
