//! Metrics, as Prometheus reads them. No label has a name that a stranger chose, so their number is bounded.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
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

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<OfRoute, Histogram>,
    open: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("steelyard");
        let requests = Family::<Answered, Counter>::default();
        registry.register("requests", "Requests that were answered", requests.clone());
        // From 0.1 ms to 13 s.
        let new = || Histogram::new(exponential_buckets(1e-4, 2.0, 18));
        let seconds = Family::<OfRoute, Histogram>::new_with_constructor(new);
        let about = "Time from the head of a request to the head of its answer";
        registry.register_with_unit("request_duration", about, Unit::Seconds, seconds.clone());
        let open = Gauge::default();
        registry.register("open_databases", "Databases of tenants that are open", open.clone());
        Metrics { registry, requests, seconds, open }
    }

    pub(crate) fn answered(&self, outcome: &Outcome) {
        let labels = Answered { route: outcome.route, status: outcome.status.into() };
        self.requests.get_or_create(&labels).inc();
        let seconds = self.seconds.get_or_create(&OfRoute { route: outcome.route });
        seconds.observe(outcome.elapsed.as_secs_f64());
    }

    /// All of them, in the text format of OpenMetrics.
    pub(crate) fn text(&self, open: u64) -> String {
        self.open.set(i64::try_from(open).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Into a string it cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
