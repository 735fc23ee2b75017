//! Why a GPU's clocks are below what they could be (nvml.h, NvmlClocksEventReasons).

const SW_POWER_CAP: u64 = 0x4;
const HW_SLOWDOWN: u64 = 0x8;
const SW_THERMAL: u64 = 0x20;
const HW_THERMAL: u64 = 0x40;
const POWER_BRAKE: u64 = 0x80;

/// From this share of its limit on a GPU that is capped by it is simply at full load. Percent.
const AT_THE_LIMIT: f64 = 90.0;
/// A reason that holds in this share of the readings is worth a word. Percent.
const OFTEN: f64 = 5.0;

/// Counted over readings. Idle (0x1), clocks that somebody set (0x2, 0x10, 0x100) are no limits that are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockEvents {
    pub readings: u64,
    pub power_cap: u64,
    /// Of `power_cap`: far below the limit that should be the reason.
    pub power_cap_below_limit: u64,
    pub hardware_slowdown: u64,
    pub software_thermal: u64,
    pub hardware_thermal: u64,
    pub power_brake: u64,
    /// Readings in which any of these held.
    pub thermal: u64,
    pub hardware: u64,
}

impl ClockEvents {
    /// One reading: the bits, and the power relative to its limit in percent, where that is known.
    pub fn add(&mut self, bits: u64, power_percentage: Option<f64>) {
        let has = |mask: u64| u64::from(bits & mask != 0);
        self.readings += 1;
        self.power_cap += has(SW_POWER_CAP);
        self.power_cap_below_limit +=
            has(SW_POWER_CAP) * u64::from(power_percentage.is_some_and(|p| p < AT_THE_LIMIT));
        self.hardware_slowdown += has(HW_SLOWDOWN);
        self.software_thermal += has(SW_THERMAL);
        self.hardware_thermal += has(HW_THERMAL);
        self.power_brake += has(POWER_BRAKE);
        self.thermal += has(SW_THERMAL | HW_THERMAL);
        self.hardware += has(HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE);
    }

    pub fn join(&mut self, other: &ClockEvents) {
        self.readings += other.readings;
        self.power_cap += other.power_cap;
        self.power_cap_below_limit += other.power_cap_below_limit;
        self.hardware_slowdown += other.hardware_slowdown;
        self.software_thermal += other.software_thermal;
        self.hardware_thermal += other.hardware_thermal;
        self.power_brake += other.power_brake;
        self.thermal += other.thermal;
        self.hardware += other.hardware;
    }

    /// Percent of the readings.
    pub fn share(&self, count: u64) -> f64 {
        if self.readings == 0 { 0.0 } else { count as f64 / self.readings as f64 * 100.0 }
    }

    /// The limits that ask for attention, each with its share in percent. A power cap at full load is none.
    pub fn limits(&self) -> Vec<(&'static str, f64)> {
        [
            ("hardware thermal slowdown", self.hardware_thermal),
            ("software thermal slowdown", self.software_thermal),
            ("hardware slowdown", self.hardware_slowdown),
            ("power brake from outside", self.power_brake),
            ("power cap far below the power limit", self.power_cap_below_limit),
        ]
        .into_iter()
        .map(|(what, count)| (what, self.share(count)))
        .filter(|(_, share)| *share >= OFTEN)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bits: u64, power_percentage: Option<f64>) -> Vec<&'static str> {
        let mut events = ClockEvents::default();
        events.add(bits, power_percentage);
        events.limits().into_iter().map(|(what, _)| what).collect()
    }

    #[test]
    fn which_reasons_matter() {
        assert!(limits(0x1, Some(10.0)).is_empty());
        assert!(limits(0x4, Some(98.0)).is_empty());
        assert_eq!(limits(0x4, Some(35.0)), ["power cap far below the power limit"]);
        assert!(limits(0x4, None).is_empty(), "without the power nobody knows");
        assert_eq!(limits(0x40, None), ["hardware thermal slowdown"]);
        assert_eq!(limits(0x88, None), ["hardware slowdown", "power brake from outside"]);
        assert_eq!(limits(0x20, None), ["software thermal slowdown"]);
        assert!(limits(0x112, None).is_empty());
    }
}
