//! What a results file says of a store's durability: what was asked for, what its settings give, what
//! was observed (rule 4); and which stores may be ranked against each other because of it.

use serde::{Deserialize, Serialize};

use steelyard_base::tier::Tier;

/// Durability asked for, set and observed (rule 4).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Durability {
    /// The tier asked for, `t0` to `t3`; `None` for the store's usual one.
    pub asked: Option<String>,
    /// The tier its settings give, as read back from it; `None` where they do not tell.
    pub set: Option<String>,
    /// Syncs (fsync, fdatasync and the like, and writes to files opened to be synced) for each
    /// acknowledged write, counted in a pass of its own that was not timed; `None` where they could not
    /// be counted.
    pub syncs: Option<f64>,
    /// Whether a sync followed later, where not every write was synced and the store may promise one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Later>,
    /// A setting that no sync can make up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limited>,
    /// What its data lie on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<Lies>,
    /// Why nothing was observed, where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// What is wrong with it, or worth knowing; `None` where all is well.
    pub remark: Option<String>,
    /// True where it is not what was asked for, or less than its settings promise.
    pub broken: bool,
}

/// The second look: whether a sync follows a write that was acknowledged without one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Later {
    /// How long it was waited for at most: `2 s`, `1000 pages of its log`.
    pub within: String,
    /// Whether one was seen.
    pub seen: bool,
}

/// A setting that limits what a store promises, however often it syncs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limited {
    /// The most it can be, `t0` to `t3`.
    pub most: String,
    /// The setting: `innodb_doublewrite=OFF`.
    pub why: String,
}

/// What the data of a store lie on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Lies {
    /// The file system: `ext4`, `overlay on tmpfs`.
    pub filesystem: String,
    /// Why nothing there outlives a crash of the machine (`which is memory`); `None` where it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatile: Option<String>,
    /// Nanoseconds that a synced write of 4 KiB takes there, the median of some; `None` where none
    /// could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_ns: Option<u64>,
    /// The shortest and the longest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_span_ns: Option<(u64, u64)>,
}

impl Lies {
    /// What a synced write takes there, in milliseconds: `1.2 ms (1.1 to 3.4)`.
    pub fn sync(&self) -> Option<String> {
        let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
        let span = self.sync_span_ns.map(|(low, high)| format!(" ({} to {})", ms(low), ms(high)));
        Some(format!("{} ms{}", ms(self.sync_ns?), span.unwrap_or_default()))
    }
}

/// How a store's tier is known. The order is that of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// Nothing is known of it.
    Unknown,
    /// It is not what was asked for, or less than its settings promise.
    Broken,
    /// Its settings give it; its syncs were not observed.
    Settings,
    /// Its syncs were counted.
    Observed,
}

/// A tier and how it is known: what decides whether two stores may be ranked against each other (rule
/// 4). Only [`Durability::class`] makes one, and the only question it answers about two of them is
/// [`ranks_with`](Class::ranks_with).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    tier: Option<Tier>,
    evidence: Evidence,
}

impl Class {
    /// Whether it keeps its records in memory.
    pub fn is_volatile(self) -> bool {
        self.tier == Some(Tier::T0)
    }

    /// Whether two stores may be ranked against each other: those of the same tier, known in the same
    /// way. What is broken or unknown is ranked with nothing, not even its like.
    pub fn ranks_with(self, other: Class) -> bool {
        self == other && self.is_ranked()
    }

    /// Whether it may be ranked with any other.
    pub fn is_ranked(self) -> bool {
        self.tier.is_some() && self.evidence >= Evidence::Settings
    }

    /// Whether it is not what was asked for, or less than its settings promise.
    pub fn is_broken(self) -> bool {
        self.evidence == Evidence::Broken
    }

    /// How it is known.
    pub fn evidence(self) -> Evidence {
        self.evidence
    }

    /// In a word or two, as it stands in tables: `t3`, `t3 by settings`, `unknown`.
    pub fn name(self) -> String {
        match (self.tier, self.evidence) {
            (None, _) | (_, Evidence::Unknown) => "unknown".into(),
            (Some(tier), Evidence::Settings) => format!("{tier} by settings"),
            (Some(tier), Evidence::Observed | Evidence::Broken) => tier.name().into(),
        }
    }

    /// In a phrase: `durable when acknowledged (t3)`, `t3 by settings, not observed`.
    pub fn phrase(self) -> String {
        match (self.tier, self.evidence) {
            (None, _) | (_, Evidence::Unknown) => "of unknown durability".into(),
            (Some(tier), Evidence::Settings) => format!("{tier} by settings, not observed"),
            (Some(tier), Evidence::Observed | Evidence::Broken) => {
                let promise = match tier {
                    Tier::T0 => "volatile",
                    Tier::T1 => "surviving the end of the process",
                    Tier::T2 => "with bounded loss when the machine crashes",
                    Tier::T3 => "durable when acknowledged",
                };
                format!("{promise} ({tier})")
            }
        }
    }
}

impl Durability {
    /// With fewer syncs than this for each acknowledged write, some were acknowledged without one.
    pub const SYNCED: f64 = 0.95;

    /// The tier it has and how that is known.
    pub fn class(&self) -> Class {
        let (tier, evidence) = self.known();
        let tier = tier.map(|tier| self.limited(tier));
        let evidence = if self.broken { Evidence::Broken } else { evidence };
        Class { tier, evidence }
    }

    /// What syncs and settings say, whatever the data lie on. What was observed beats what is set.
    fn known(&self) -> (Option<Tier>, Evidence) {
        let set = read(&self.set);
        let Some(syncs) = self.syncs else {
            let evidence = if set.is_some() { Evidence::Settings } else { Evidence::Unknown };
            return (set, evidence);
        };
        let unsynced = set.map_or(Tier::T1, |set| set.min(Tier::T1));
        match (&self.later, set) {
            _ if syncs >= Durability::SYNCED => (Some(Tier::T3), Evidence::Observed),
            (Some(later), _) if later.seen => (Some(Tier::T2), Evidence::Observed),
            (Some(_), _) => (Some(unsynced), Evidence::Observed),
            (None, Some(Tier::T0 | Tier::T1 | Tier::T3)) => (Some(unsynced), Evidence::Observed),
            // Files of before there was a second look.
            (None, Some(Tier::T2)) => (set, Evidence::Settings),
            (None, None) => (None, Evidence::Unknown),
        }
    }

    /// The tier, less what a setting or the file system takes from it.
    fn limited(&self, tier: Tier) -> Tier {
        let limit = self.limit.as_ref().and_then(|limit| limit.most.parse().ok());
        let memory = self.medium.as_ref().and_then(|lies| lies.volatile.as_ref()).map(|_| Tier::T1);
        [limit, memory].into_iter().flatten().fold(tier, Tier::min)
    }

    /// Whether its settings give more than it has: by its syncs, or by what its data lie on.
    pub fn is_less_than_set(&self) -> bool {
        read(&self.set).zip(self.class().tier).is_some_and(|(set, tier)| tier < set)
    }

    /// Fills in what follows from the rest: whether it is broken, and the remark.
    pub fn judge(&mut self) {
        self.broken = false;
        let (known, _) = self.known();
        let Some((known, tier)) = known.zip(self.class().tier) else {
            self.remark = self.unseen.as_ref().map(|why| format!("not observed: {why}"));
            return;
        };
        let set = read(&self.set);
        let asked = read(&self.asked);
        let by_settings = set.map_or(String::new(), |set| format!("{set} by its settings"));
        let mut said = Vec::new();
        if let Some(syncs) = self.syncs.filter(|_| set != Some(known)) {
            let seen = match &self.later {
                Some(later) if !later.seen => format!("no sync seen within {}", later.within),
                _ => format!("{syncs:.2} syncs for each write seen"),
            };
            said.push(format!("{seen}: {known}"));
        }
        if let Some(limit) = self.limit.as_ref().filter(|_| asked != Some(tier)) {
            said.push(format!("{}: {} at most", limit.why, limit.most));
        }
        if let Some(Lies { filesystem, volatile: Some(why), .. }) = &self.medium
            && known > Tier::T1
        {
            said.push(format!("its data lie on {filesystem}, {why}: {tier}"));
        }
        said.extend(self.unseen.as_ref().map(|why| format!("not observed: {why}")));
        // What it does is less than what it says, or another thing than what was asked for.
        self.broken = self.syncs.is_some() && set.is_some_and(|set| known < set);
        if let Some(asked) = asked.filter(|asked| *asked != tier) {
            self.broken = true;
            if said.is_empty() {
                said.push(format!("not {asked}, which was asked for"));
            }
        }
        let first = (!by_settings.is_empty() && !said.is_empty()).then_some(by_settings);
        let all: Vec<String> = first.into_iter().chain(said).collect();
        self.remark = (!all.is_empty()).then(|| all.join("; "));
    }
}

fn read(tier: &Option<String>) -> Option<Tier> {
    tier.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(asked: Option<&str>, set: Option<&str>, syncs: Option<f64>) -> Durability {
        let owned = |tier: Option<&str>| tier.map(str::to_owned);
        Durability { asked: owned(asked), set: owned(set), syncs, ..Durability::default() }
    }

    fn judged(mut durability: Durability) -> (String, bool, String) {
        durability.judge();
        let remark = durability.remark.clone().unwrap_or_default();
        (durability.class().name(), durability.broken, remark)
    }

    fn later(seen: bool) -> Option<Later> {
        Some(Later { within: "2 s".into(), seen })
    }

    fn tmpfs() -> Option<Lies> {
        let volatile = Some("which is memory".to_owned());
        Some(Lies { filesystem: "tmpfs".into(), volatile, sync_ns: Some(900), sync_span_ns: None })
    }

    #[test]
    fn what_was_observed_beats_what_is_set() {
        let well = |name: &str| (name.to_owned(), false, String::new());
        assert_eq!(judged(of(Some("t3"), Some("t3"), Some(1.0))), well("t3"));
        assert_eq!(judged(of(None, Some("t1"), Some(0.0))), well("t1"));
        assert_eq!(judged(of(Some("t0"), Some("t0"), Some(0.0))), well("t0"));
        assert_eq!(
            judged(Durability { later: later(true), ..of(None, Some("t2"), Some(0.1)) }),
            well("t2")
        );
        // A server that tells nothing of itself.
        let (name, broken, remark) = judged(of(Some("t3"), None, Some(1.0)));
        assert_eq!((&*name, broken, &*remark), ("t3", false, "1.00 syncs for each write seen: t3"));
        // One that promises more than it does.
        let lies = Durability { later: later(false), ..of(None, Some("t3"), Some(0.0)) };
        let (name, broken, remark) = judged(lies.clone());
        assert_eq!((&*name, broken), ("t1", true));
        assert_eq!(remark, "t3 by its settings; no sync seen within 2 s: t1");
        assert!(lies.is_less_than_set() && !lies.class().is_broken());
        // One that does more than was asked for.
        let (name, broken, remark) = judged(of(Some("t1"), Some("t1"), Some(1.0)));
        assert_eq!((&*name, broken), ("t3", true));
        assert_eq!(remark, "t1 by its settings; 1.00 syncs for each write seen: t3");
        // t2 has to be seen to sync.
        let silent = Durability { later: later(false), ..of(Some("t2"), Some("t2"), Some(0.0)) };
        assert_eq!(judged(silent).0, "t1");
    }

    #[test]
    fn what_lies_in_memory_is_t1_at_most() {
        let on = |durability| judged(Durability { medium: tmpfs(), ..durability });
        let said = "t3 by its settings; its data lie on tmpfs, which is memory: t1";
        assert_eq!(on(of(Some("t3"), Some("t3"), Some(1.0))), ("t1".into(), true, said.into()));
        assert_eq!(on(of(None, Some("t3"), Some(1.0))), ("t1".into(), false, said.into()));
        assert_eq!(on(of(None, Some("t1"), Some(0.0))), ("t1".into(), false, String::new()));
        assert_eq!(on(of(None, Some("t0"), Some(0.0))).0, "t0");
        let unseen = Durability { medium: tmpfs(), ..of(None, Some("t3"), None) };
        assert_eq!(unseen.class().name(), "t1 by settings");
        assert!(unseen.is_less_than_set());
    }

    #[test]
    fn what_nobody_saw_is_so_by_its_settings() {
        let unseen = Some("it runs on another machine".to_owned());
        let far = Durability { unseen: unseen.clone(), ..of(Some("t3"), Some("t3"), None) };
        assert_eq!(far.class().phrase(), "t3 by settings, not observed");
        let said = "t3 by its settings; not observed: it runs on another machine";
        assert_eq!(judged(far), ("t3 by settings".into(), false, said.into()));
        let dark = Durability { unseen, ..of(Some("t3"), None, None) };
        assert_eq!((dark.class().name(), dark.class().is_ranked()), ("unknown".into(), false));
        assert_eq!(judged(dark).2, "not observed: it runs on another machine");
    }

    #[test]
    fn a_setting_may_undo_every_sync() {
        let limit = Some(Limited { most: "t1".into(), why: "full_page_writes=off".into() });
        let torn = Durability { limit, ..of(Some("t3"), Some("t1"), Some(1.0)) };
        let (name, broken, remark) = judged(torn);
        assert_eq!((&*name, broken), ("t1", true));
        assert!(remark.contains("full_page_writes=off: t1 at most"), "{remark}");
    }

    /// Files of before there was a second look, a medium, or a reason.
    #[test]
    fn older_files_are_read() {
        let text = r#"{"asked":"t2","set":"t2","syncs":0.01,"remark":null,"broken":false}"#;
        let durability: Durability = serde_json::from_str(text).unwrap();
        assert_eq!(durability.class().name(), "t2 by settings");
        assert_eq!(serde_json::to_string(&durability).unwrap(), text);
    }

    prop_compose! {
        fn some()(
            asked in prop::option::of(0..4usize),
            set in prop::option::of(0..4usize),
            syncs in prop::option::of(0.0..2.0f64),
            seen in prop::option::of(any::<bool>()),
            memory in any::<bool>(),
            most in prop::option::of(0..4usize),
            judge in any::<bool>(),
        ) -> Durability {
            let name = |tier: Option<usize>| tier.map(|tier| Tier::ALL[tier].name().to_owned());
            let mut durability = Durability {
                asked: name(asked),
                set: name(set),
                syncs,
                later: seen.and_then(later),
                limit: name(most).map(|most| Limited { most, why: "a setting".into() }),
                medium: tmpfs().filter(|_| memory),
                ..Durability::default()
            };
            if judge {
                durability.judge();
            }
            durability
        }
    }

    proptest! {
        #[test]
        fn only_like_is_ranked_with_like(a in some(), b in some()) {
            let (x, y) = (a.class(), b.class());
            prop_assert_eq!(x.ranks_with(y), y.ranks_with(x));
            if x.ranks_with(y) {
                prop_assert_eq!((x.tier, x.evidence), (y.tier, y.evidence));
                prop_assert!(!a.broken && !b.broken && x.tier.is_some());
                // Nobody counted the one, so nobody counted the other.
                let counted = |d: &Durability| d.class().evidence() == Evidence::Observed;
                prop_assert_eq!(counted(&a), counted(&b));
            }
        }

        #[test]
        fn nothing_is_durable_that_was_not_seen_on_a_disk(durability in some()) {
            let class = durability.class();
            if class.evidence() == Evidence::Observed && class.tier == Some(Tier::T3) {
                prop_assert!(durability.syncs.unwrap() >= Durability::SYNCED && durability.medium.is_none());
            }
            if durability.medium.is_some() {
                prop_assert!(class.tier <= Some(Tier::T1));
            }
        }

        #[test]
        fn what_is_ranked_is_what_was_asked_for(mut durability in some()) {
            durability.judge();
            let class = durability.class();
            if let (Some(asked), true) = (read(&durability.asked), class.is_ranked()) {
                prop_assert_eq!(class.tier, Some(asked));
            }
        }
    }
}
