//! Data moves between the host and the GPU at the link's full rate.

use super::super::facts::Facts;
use super::super::series::{Measure, at, average};
use super::super::thresholds as t;
use super::case::{Case, percent};

pub fn judge(facts: &Facts) -> Case {
    let mut case = Case::new("transfer_bound", facts);
    let of_gpu = |index: usize| {
        let gpu = &facts.seen.gpus[index];
        let link = gpu.pcie_link.map(f64::from).filter(|l| l.is_finite() && *l > 0.0)?;
        let rate = |slot: usize| {
            let (rx, tx) = (at(&gpu.pcie_receive, slot), at(&gpu.pcie_transmit, slot));
            // One after the other, as copies there and back are, they have the link in turns.
            rx.into_iter().chain(tx).reduce(|a, b| a + b)
        };
        // Readings take in what the GPU computes in between, in which nothing is copied.
        let enough = t::TRANSFER * link * facts.lost().value.max(t::TRANSFER_LOST);
        let full = (0..facts.grid.slots).filter_map(|s| Some((1.0, f64::from(u8::from(rate(s)? >= enough)))));
        let most = average((0..facts.grid.slots).filter_map(|s| Some((1.0, rate(s)?))))?;
        Some((average(full)?, most, link, gpu))
    };
    let worst = (0..facts.gpus.len()).filter_map(of_gpu).max_by(|a, b| a.0.value.total_cmp(&b.0.value));
    let full = case.at_least("gpu.pcie_at_its_rate_share", worst.map(|w| w.0), t::MAIN_SHARE);
    case.all(&[full]);
    let Some((share, rate, link, gpu)) = worst else {
        case.reason = "PCIe traffic could not be read".into();
        return case;
    };
    case.share = share.value;
    case.wall = share.value * facts.lost().value.max(t::HEALTHY_LOST);
    let slow = gpu.pcie_link_max.map(f64::from).filter(|max| link < 0.9 * max);
    if let Some(max) = slow {
        case.below("gpu.pcie_link_share_of_its_best", Some(Measure { value: link / max, samples: 1 }), 0.9);
    }
    case.reason = format!(
        "PCIe of GPU {} carried {:.0} MB/s on average, and was at {} or more of its {link:.0} MB/s in {} of the window{}",
        gpu.label,
        rate.value,
        percent(t::TRANSFER),
        percent(share.value),
        slow.map(|max| format!("; the link could do {max:.0} MB/s")).unwrap_or_default()
    );
    case.remedy("pin_memory=True and non_blocking=True", "copies overlap with computing");
    case.remedy(
        "send less: uint8 images, converted on the GPU; keep what is used again there",
        "the link is full",
    );
    if slow.is_some() {
        case.remedy(
            "look at the slot and the BIOS: the link runs below its best",
            "half the lanes or an older generation",
        );
    }
    case
}
