//! What else differs between two runs, beside what they are compared for.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Contender, Difference, Durability, Kept, Phase, Results};

/// Collects what differs.
#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn look(&mut self, what: &str, new: impl ToString, old: impl ToString, bars: bool) {
        self.of(None, what, new, old, bars);
    }

    fn of(
        &mut self,
        competitor: Option<&str>,
        what: &str,
        new: impl ToString,
        old: impl ToString,
        bars: bool,
    ) {
        let (new, old) = (new.to_string(), old.to_string());
        if new != old {
            let competitor = competitor.map(str::to_owned);
            self.0.push(Difference { what: what.into(), new, old, bars, competitor });
        }
    }

    fn maps(&mut self, new: &BTreeMap<String, String>, old: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = new.keys().chain(old.keys()).collect();
        let of =
            |map: &BTreeMap<String, String>, name: &str| map.get(name).cloned().unwrap_or_default();
        for name in names {
            // A program that was not optimised is another one.
            self.look(name, of(new, name), of(old, name), name == "opt-level");
        }
    }
}

/// All that differs, and what bars a comparison.
pub(super) fn differences(new: &Results, old: &Results) -> Vec<Difference> {
    let mut all = Differences::default();
    all.look("bench", &new.bench, &old.bench, true);
    let text = |r: &Results| r.workload.as_ref().map(|w| w.text.clone()).unwrap_or_default();
    if text(new) != text(old) {
        let name = |r: &Results| r.workload.as_ref().map(|w| w.name.clone()).unwrap_or_default();
        let then = format!("{} as it was", name(old));
        all.look("workload", name(new), then, true);
    }
    let (a, b) = (&new.machine, &old.machine);
    all.look("processor", &a.cpu, &b.cpu, true);
    all.look("logical processors", a.cores, b.cores, true);
    // What a virtual machine calls its memory varies by a little from start to start.
    if a.memory.abs_diff(b.memory) > a.memory.max(b.memory) / 50 {
        all.look("bytes of memory", a.memory, b.memory, false);
    }
    all.look("kernel", &a.kernel, &b.kernel, false);
    all.look("system", &a.os, &b.os, false);
    let governor = |g: &Option<String>| g.clone().unwrap_or_default();
    all.look("frequency governor", governor(&a.governor), governor(&b.governor), false);
    all.look("records", new.dataset.records, old.dataset.records, true);
    all.look("kind of records", &new.dataset.kind, &old.dataset.kind, true);
    all.look("name of the records", &new.dataset.name, &old.dataset.name, false);
    let bytes = |r: &Results| r.dataset.sizes.get("").map_or(String::new(), u64::to_string);
    all.look("bytes of the records as JSON lines", bytes(new), bytes(old), true);
    let basis = |r: &Results| format!("{:?}", r.plan.basis).to_lowercase();
    all.look("time that figures are of", basis(new), basis(old), false);
    all.look("seed", new.plan.seed, old.plan.seed, false);
    all.look("nanoseconds of a window", new.plan.window_ns, old.plan.window_ns, false);
    all.maps(&new.software, &old.software);
    all.maps(&new.settings, &old.settings);
    for contender in new.competitors.iter().filter(|c| !c.null) {
        if let Some(before) = old.competitor(&contender.name) {
            contenders(&mut all, contender, before);
        }
    }
    for phase in &new.phases {
        if let Some(before) = old.phase(&phase.id) {
            phases(&mut all, phase, before);
        }
    }
    all.0
}

fn contenders(all: &mut Differences, new: &Contender, old: &Contender) {
    let name = new.name.as_str();
    let plain = |c: &Contender| c.sizes.get("").map_or(String::new(), u64::to_string);
    // The same records in the same format are as long; a format may change, and is then compared.
    all.of(Some(name), &format!("bytes of all records as {name}"), plain(new), plain(old), false);
    let equal = |c: &Contender| c.proof.as_ref().map_or(String::new(), |p| p.equal.to_string());
    all.of(Some(name), &format!("records equal from {name}"), equal(new), equal(old), false);
    let (Some(a), Some(b)) = (&new.store, &old.store) else { return };
    let class = |d: &Durability| {
        let class = d.class();
        format!("{}{}", class.name(), if class.is_broken() { "!" } else { "" })
    };
    let (now, then) = (class(&a.durability), class(&b.durability));
    all.of(Some(name), &format!("durability of {name}"), now, then, true);
    let product = |k: &Kept| format!("{} {}", k.product, k.version);
    all.of(Some(name), &format!("version of {name}"), product(a), product(b), false);
    all.of(Some(name), &format!("connection of {name}"), &a.connection, &b.connection, false);
    let settings: BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
    for setting in settings {
        let of = |k: &Kept| k.settings.get(setting).cloned().unwrap_or_default();
        all.of(Some(name), &format!("{setting} of {name}"), of(a), of(b), false);
    }
}

fn phases(all: &mut Differences, new: &Phase, old: &Phase) {
    let id = &new.id;
    all.look(&format!("operations in {id}"), new.units, old.units, false);
    all.look(&format!("what {id} does"), &new.about, &old.about, false);
}
