//! Metrics, as Prometheus reads them. No label has a name that a stranger chose, so their number is bounded.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use nix::time::{ClockId, clock_gettime};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};

/// How a request ended.
pub(crate) struct Outcome {
    pub route: &'static str,
    pub status: u16,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    status: u32,
}

/// What is in use, and what it is limited to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    of: &'static str,
}

/// How much of each is in use, by the names of the limits.
pub(crate) type InUse = [(&'static str, u64); 4];

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<OfRoute, Histogram>,
    refused: Family<Refused, Counter>,
    used: Gauges,
    process: Process,
}

impl Metrics {
    /// With what is limited, and to how much.
    pub(crate) fn new(limits: InUse) -> Metrics {
        let mut whole = Registry::default();
        let process = Process::new(&mut whole);
        let registry = whole.sub_registry_with_prefix("steelyard");
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "What runs", Info::new(version));
        let requests = Family::<Answered, Counter>::default();
        registry.register("requests", "Requests that were answered", requests.clone());
        // From 0.1 ms to 13 s.
        let new = || Histogram::new(exponential_buckets(1e-4, 2.0, 18));
        let seconds = Family::<OfRoute, Histogram>::new_with_constructor(new);
        let about = "Time from the head of a request to the head of its answer";
        registry.register_with_unit("request_duration", about, Unit::Seconds, seconds.clone());
        let refused = Family::<Refused, Counter>::default();
        let about = "Lines of bulk requests that were not done, by the status of the line";
        registry.register("bulk_refused", about, refused.clone());
        let used = Gauges::new(registry, "in_use", "What is in use, by the name of its limit");
        Gauges::new(registry, "limit", "How much may be in use").set(&limits);
        Metrics { registry: whole, requests, seconds, refused, used, process }
    }

    pub(crate) fn answered(&self, outcome: &Outcome) {
        let labels = Answered { route: outcome.route, status: outcome.status.into() };
        self.requests.get_or_create(&labels).inc();
        let seconds = self.seconds.get_or_create(&OfRoute { route: outcome.route });
        seconds.observe(outcome.elapsed.as_secs_f64());
    }

    /// Counts a line of a bulk request that was not done.
    pub(crate) fn refused(&self, status: u16) {
        self.refused.get_or_create(&Refused { status: status.into() }).inc();
    }

    /// All of them, in the text format of OpenMetrics.
    pub(crate) fn text(&self, used: &InUse) -> String {
        self.used.set(used);
        self.process.look();
        let mut text = String::new();
        // Into a string it cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// One for each limit: those of bytes have a name of their own, as what is added up has one unit.
struct Gauges {
    counts: Family<Of, Gauge>,
    bytes: Family<Of, Gauge>,
}

impl Gauges {
    fn new(registry: &mut Registry, name: &str, about: &str) -> Gauges {
        let (counts, bytes) = (Family::<Of, Gauge>::default(), Family::<Of, Gauge>::default());
        registry.register(name, about, counts.clone());
        registry.register_with_unit(name, about, Unit::Bytes, bytes.clone());
        Gauges { counts, bytes }
    }

    fn set(&self, to: &InUse) {
        for (of, value) in *to {
            let (gauges, of) = match of.strip_suffix("_bytes") {
                Some(of) => (&self.bytes, of),
                None => (&self.counts, of),
            };
            gauges.get_or_create(&Of { of }).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

/// Now, as this is made when the process starts.
fn start_time() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// This process, under the names that Prometheus' own clients give it. Where the system does not say, they stay 0.
struct Process {
    cpu: Counter<f64, AtomicU64>,
    memory: Gauge,
    files: Gauge,
}

impl Process {
    fn new(registry: &mut Registry) -> Process {
        let (cpu, memory, files) = (Counter::default(), Gauge::default(), Gauge::default());
        let registry = registry.sub_registry_with_prefix("process");
        let about = "User and system processor time";
        registry.register_with_unit("cpu", about, Unit::Seconds, Counter::clone(&cpu));
        let about = "Memory that is resident";
        registry.register_with_unit("resident_memory", about, Unit::Bytes, memory.clone());
        registry.register("open_fds", "File descriptors that are open", files.clone());
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(start_time());
        let about = "When it started, in seconds since 1970";
        registry.register_with_unit("start_time", about, Unit::Seconds, start);
        Process { cpu, memory, files }
    }

    fn look(&self) {
        if let Ok(time) = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID) {
            let seconds = Duration::from(time).as_secs_f64();
            self.cpu.inner().store(seconds.to_bits(), Ordering::Relaxed);
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().next()?.parse().ok());
        self.memory.set(kilobytes.map_or(0, |k: i64| k * 1024));
        let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.files.set(i64::try_from(files).unwrap_or(i64::MAX));
    }
}
