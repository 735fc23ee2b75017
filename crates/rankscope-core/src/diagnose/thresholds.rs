//! Every number that a rule compares with, in one place. docs/diagnosis.md shows the same table; a test holds them
//! together. Shares are from 0 to 1, and of the lost time (the time in which the GPU did nothing) where not said
//! otherwise.

macro_rules! thresholds {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:expr;)*) => {
        $($(#[doc = $doc])+ pub const $name: f64 = $value;)*
        /// Name, value and sentence of each.
        pub const ALL: &[(&str, f64, &str)] = &[$((stringify!($name), $value, concat!($($doc),+))),*];
    };
}

thresholds! {
    /// Percent of utilisation below which a slot is idle; above the desktop's floor.
    IDLE_CUT = 10.0;
    /// Around the cut, percent up and down: a phase ends only beyond it.
    IDLE_HYSTERESIS = 3.0;
    /// Percent of utilisation that a desktop may cause by itself; a higher floor is work.
    FLOOR_MAX = 8.0;
    /// Percent of utilisation from which a slot counts for the GPU's own busy power.
    HIGH_UTILIZATION = 50.0;
    /// Of the way from idle power to the limit: up to here power is idle power.
    IDLE_POWER_BAND = 0.08;
    /// Of the power limit: what a GPU takes that waits, where the window doesn't show it.
    IDLE_POWER = 0.1;
    /// Of the GPU's own busy power: below it a high utilisation is waiting, not work.
    LOW_POWER = 0.45;
    /// Of the way from idle to busy power: the same, for GPUs that idle at high power.
    LOW_POWER_SPAN = 0.25;
    /// Of the power limit: below it GPUs that are used to the full may also wait for each other.
    MIDDLING_POWER = 0.6;
    /// Percent: memory that is read or written for so much of the time is work at low power.
    MEMORY_BOUND = 30.0;
    /// Percent of utilisation from which waiting at low power can be a collective's.
    COLLECTIVE_UTILIZATION = 90.0;
    /// Seconds: shorter phases are joined to their neighbours.
    MIN_PHASE_S = 0.6;
    /// Seconds: high utilisation at idle power that is shorter is a spike of the display.
    SPIKE_S = 2.0;
    /// p98 of power ÷ p02: below it power says nothing.
    POWER_SPREAD = 1.15;
    /// Share of the window that may be lost without a finding.
    HEALTHY_LOST = 0.15;
    /// Share of the window from which a wait, a limit or a neighbour that leaves the GPU busy is a finding.
    HEALTHY_OTHER = 0.05;
    /// Share from which a cause can be the main one.
    MAIN_SHARE = 0.2;
    /// Share from which a cause is worth a word.
    SECOND_SHARE = 0.1;
    /// Of a general cause's share: a specific one that explains so much of it takes its place.
    EXPLAINS = 0.5;
    /// The same, where the two may also be different stretches of time.
    EXPLAINS_APART = 0.75;
    /// Share of a slot on a CPU from which a thread was running in it.
    ON_CPU = 0.5;
    /// Share of a slot on a CPU from which a thread did not sleep in it.
    NEVER_SLEEPS = 0.9;
    /// Share of a slot on a CPU up to which it did nothing else than sleep.
    ONLY_SLEEPS = 0.1;
    /// Share of a slot runnable without a CPU from which a thread was starved.
    STARVED = 0.2;
    /// Busy share of a loader worker (on a CPU or wanting one) from which it is saturated.
    WORKER_BUSY = 0.8;
    /// Of the time in which the main thread waits for data: workers that are busy for so much of it have no leisure, though they rest while nobody waits.
    IN_TURN = 0.9;
    /// Cores that must be free for more workers to help.
    SPARE_CORES = 0.6;
    /// Of the CPU limit: from here on nothing is left.
    CPU_FULL = 0.85;
    /// Of the CPU limit: a job that wants CPUs and has less of them is starved by others, whatever it wants.
    TAKEN = 0.5;
    /// Percent of the periods throttled.
    THROTTLED = 10.0;
    /// Demand for CPU ÷ limit from which threads stand in each other's way.
    OVERSUBSCRIBED = 1.5;
    /// Demand of one process in cores from which it computes in several threads.
    MULTITHREADED = 2.0;
    /// Cores that are wanted for each that there is, from which many threads want it, whosever they are.
    CROWD = 4.0;
    /// Share of threads' time in uninterruptible sleep, or in a file system's wait.
    DISK_WAIT = 0.2;
    /// Percent of the time in which everybody waited for I/O.
    IO_PRESSURE = 10.0;
    /// Percent of the time in which everybody waited for memory.
    MEMORY_PRESSURE = 10.0;
    /// Major faults a second of one process.
    MAJOR_FAULTS = 100.0;
    /// Seconds that a major fault takes at least.
    FAULT_S = 0.0001;
    /// Pages a second that come back from swap, or are read again right after their reclaim.
    RECLAIMED_PAGES = 500.0;
    /// Of what is read from storage: so much had just been dropped.
    RECLAIMED_READS = 0.5;
    /// Share of the lost time in which compilers ran or the main thread compiled.
    COMPILING = 0.2;
    /// MB a second written by the rank from which a slot belongs to a checkpoint.
    WRITING = 10.0;
    /// MB that a checkpoint has at least.
    CHECKPOINT = 50.0;
    /// MB a second read by the main process, in the lost time, from which it loads data.
    READING = 2.0;
    /// Share of main-thread stacks inside an iterator that makes its next element.
    ITERATING = 0.5;
    /// Share of busy readings in which a clock limit held.
    CLOCK_LIMITED = 0.05;
    /// SM clock ÷ maximum below which a limit costs speed.
    CLOCK_LOW = 0.8;
    /// SM clock ÷ maximum below which a clock that was set is a limit: defaults are higher.
    CLOCK_SET_LOW = 0.7;
    /// What a limit costs where the clock cannot be read.
    CLOCK_COST = 0.2;
    /// Percent of the GPU that others use.
    OTHERS_UTILIZATION = 10.0;
    /// Percent of utilisation, on average, below which nobody computes.
    UNUSED_UTILIZATION = 2.0;
    /// MB of GPU memory that a driver and a display take without any job.
    UNUSED_MEMORY = 600.0;
    /// MB/s over the network from which an event loop waits for what comes.
    INCOMING = 1.0;
    /// Of the link's rate.
    TRANSFER = 0.7;
    /// Share of the window: so much of it a link that is full may rest, while the GPU computes.
    TRANSFER_LOST = 0.75;
    /// Share of one rank's time in a collective ÷ the others', below which it is the one that is late.
    STRAGGLER = 0.4;
    /// Power above idle for each unit of utilisation ÷ that of the rank where it is most, below which a GPU waits.
    WORKS_FOR_ITS_USE = 0.75;
    /// Share of the window that a rank loses more than the others, from which they must wait for it.
    LOSES_MORE = 0.15;
    /// Share of samples in which the garbage collector was at work.
    COLLECTING = 0.1;
    /// Share of samples in the wait for the GIL.
    GIL_WAIT = 0.2;
    /// Voluntary switches a second, below which a thread doesn't take turns with another.
    GIL_SWITCHES = 20.0;
    /// Share of the main thread's stacks that one source line may have where launching is the work.
    LAUNCH_SPREAD = 0.3;
    /// Share of the window that the main thread is in one line beyond the lost time, from which that line launches work.
    LAUNCH_BESIDE = 0.2;
    /// Of the power limit: below it a busy GPU has too little to do in each kernel.
    LAUNCH_POWER = 0.4;
    /// Share of all main-thread stacks in a wait at one line of the program, with the GPU partly idle.
    SYNC_SHARE = 0.2;
    /// That wait's share may differ by so much from the share of the time in which the GPU is used.
    SYNC_FITS = 0.35;
    /// Of the main thread's Python: a line with so much of it is work of its own, which keeps the GPU waiting without a sync.
    SYNC_ONE_LINE = 0.8;
    /// Share of the window: sleep in native code that differs no more from the time in which the GPU works is for the GPU.
    WAIT_FITS = 0.1;
    /// Waits of the main thread in sleep, a second: rarer ones are each for something that takes its time.
    SYNC_SWITCHES = 50.0;
    /// Share of the window that starting workers may take.
    RESTART = 0.05;
    /// Seconds after its birth in which a worker still starts.
    WORKER_START_S = 5.0;
    /// Cores in use by all processes together, below which nobody works.
    ASLEEP_CORES = 0.05;
    /// Share of samples with one and the same stack, from which a thread does not move.
    STANDS_STILL = 0.98;
    /// Share of the window from which a GPU did nothing at all.
    ALL_LOST = 0.95;
    /// Share of the window lost from which one who sleeps by choice in all of it, with nothing under way, has too little to do.
    RESTS = 0.5;
    /// Of the link's rate: less is no copy that anybody waits for.
    QUIET_LINK = 0.02;
    /// Seconds that must be seen before a standstill is one.
    STANDSTILL_S = 8.0;
    /// Spread of power ÷ median below which it is flat.
    FLAT_POWER = 0.05;
    /// Of the power limit: a flat power below it at full utilisation is a kernel that spins.
    SPIN_POWER = 0.3;
    /// Percent: memory that is read or written for less of the time is at rest while a kernel waits.
    AT_REST = 10.0;
}
