//! One number of tenants on one store: the data of all arms are made, all arms are tried once, and then take turns in
//! rounds until the rule ends them.

use std::sync::Arc;

use super::{
    NULL, Run,
    people::People,
    plan::{self, Arm, INSERT, QUERY, TOUCH},
    reach::{Handles, Spec, Way},
    site::{self, Order, Site},
    turn::{Done, Draws, Turn, Window},
};
use crate::{
    Error, ErrorKind, Result,
    clock::Monotonic,
    derive::first_wide,
    instruments::Instruments,
    results::{Cell, Latency, Phase, Probe, Proof, Results, Tally, tenants::Held},
    run::Stage,
    schedule::{Orders, StopRule, Stopped},
    stats::FEWEST,
    store::Description,
    stores::{Target, null::Null},
};

/// Rounds that are done whatever the budget says: one more than an interval takes.
const LEAST: u32 = FEWEST as u32 + 1;
/// Rounds that the budget is to have room for.
const ROOM: f64 = 12.0;
/// The share of a round's time that the windows of a phase may take, and their least and most seconds.
const SHARE: f64 = 0.3;
const SECONDS: (f64, f64) = (0.1, 3.0);
/// So many operations are tried, before any are timed.
const TRIED: u64 = 32;
/// In so many rounds all tenants are asked, and processes are looked at.
const LOOKS: u32 = 3;
/// How many records the competitor that keeps nothing knows.
const SAMPLES: u64 = 16;

/// What is measured together.
struct Block<'b> {
    target: &'b Target,
    people: &'b People,
    arms: Vec<Arm>,
    sites: Vec<Site>,
    /// Ids of the phases, by their kinds.
    phases: Vec<(&'static str, String)>,
    /// Arms that were left out.
    broken: Vec<Arm>,
    null: Null,
}

impl Block<'_> {
    fn alive(&self) -> impl Iterator<Item = Arm> {
        self.arms.iter().copied().filter(|arm| !self.broken.contains(arm))
    }

    fn id(&self, kind: &str) -> Option<&str> {
        self.phases.iter().find(|(known, _)| *known == kind).map(|(_, id)| id.as_str())
    }

    /// In which store, with how many tenants, for errors and progress.
    fn place(&self, arm: Arm) -> String {
        format!("{}, {arm}, {} tenants", self.target.label, self.people.tenants)
    }
}

impl Run<'_, '_, '_> {
    /// Measures so many tenants on a store; `share` is how many seconds that may take. Gives why it ended; none where
    /// no arm took part.
    pub(super) async fn block(
        &mut self,
        target: &Target,
        tenants: u64,
        share: f64,
    ) -> Result<Option<Stopped>> {
        let deadline = self.seconds() + share;
        let people =
            People::new(self.results.plan.seed, tenants, self.options.documents, &self.stop)?;
        let scheme = site::scheme(target)?;
        let arms = plan::arms(self.options, scheme);
        // Each open database has one or two connections, and one that is closed leaves later.
        let connections = (2 * self.options.open.min(tenants) + 60).max(151).to_string();
        let served = match scheme {
            "postgres" | "mysql" => target.clone().setting("max_connections", &connections),
            _ => target.clone(),
        };
        let some = (0..SAMPLES).map(|n| people.of(0, n % people.documents).map(|row| row.record));
        let some = some.collect::<Result<Vec<_>>>()?;
        let mut block = Block {
            target,
            people: &people,
            arms,
            sites: Vec::new(),
            phases: Vec::new(),
            broken: Vec::new(),
            null: Null::with(tenants * people.documents, some.into_iter())?,
        };
        let refused = self.make(&mut block, &served).await;
        let measured = match refused {
            Ok(refused) => {
                self.plan_block(&mut block, &refused);
                self.measure(&mut block, deadline).await
            }
            Err(e) => Err(e),
        };
        for site in &mut block.sites {
            if let Err(left) = site.drop_made().await {
                self.results.dataset.remarks.push(format!("{}: {left}", target.label));
            }
        }
        measured
    }

    /// Makes the data of each arm; gives the arms that there are none of, and why.
    async fn make(&mut self, block: &mut Block<'_>, target: &Target) -> Result<Vec<(Arm, String)>> {
        let mut refused = Vec::new();
        for way in [Way::Shared, Way::Databases, Way::Schemas] {
            let of_way: Vec<Arm> =
                block.arms.iter().copied().filter(|arm| arm.way() == way).collect();
            let Some(&arm) = of_way.first() else { continue };
            self.made += 1;
            let folder = self.scratch.path().join(format!("site-{}", self.made));
            std::fs::create_dir(&folder)?;
            let stem = match target.is_own() {
                true => format!("steelyard_bench_{}_{}", std::process::id(), self.made),
                false => "tenant".into(),
            };
            let (stop, program) = (self.stop.clone(), self.options.program.clone());
            let order = Order {
                target,
                way,
                people: block.people,
                open: self.options.open,
                program: program.as_deref().filter(|_| of_way.contains(&Arm::Gateway)),
                folder: &folder,
                stem: &stem,
                patience: self.options.patience,
                stop: &stop,
            };
            let (place, count) = (block.place(arm), block.people.tenants as usize);
            let mut told = |n: u64| self.tell(Stage::Preparing, &place, "", (n as usize, count));
            told(0);
            let made = Site::make(&order, &mut told).await;
            match made {
                Ok(site) => block.sites.push(site),
                Err(e) if self.stop.is_set() || e.kind() == ErrorKind::Mismatch => return Err(e),
                Err(e) => {
                    let why = format!("failed: {e}");
                    let remark = format!("{place}: {e}");
                    self.results.dataset.remarks.push(remark);
                    refused.extend(of_way.into_iter().map(|arm| (arm, why.clone())));
                }
            }
        }
        Ok(refused)
    }

    /// Puts phases, cells and what is known of the sites into the results.
    fn plan_block(&mut self, block: &mut Block<'_>, refused: &[(Arm, String)]) {
        let (label, tenants) = (block.target.label.as_str(), block.people.tenants);
        let counts = (tenants, block.people.documents);
        for kind in [QUERY, INSERT, TOUCH] {
            if kind == TOUCH && plan::touches(tenants) == 0 {
                continue;
            }
            let phase = plan::phase(kind, label, counts, block.people.answer());
            block.phases.push((kind.0, phase.id.clone()));
            self.results.phases.push(phase);
        }
        self.results.contrasts.extend(plan::contrasts(&block.arms, label, tenants));
        for &arm in &block.arms {
            let why = refused.iter().find(|(of, _)| *of == arm).map(|(_, why)| why.clone());
            for (_, id) in &block.phases {
                self.results.cells.push(Cell {
                    competitor: arm.name().into(),
                    phase: id.clone(),
                    refused: why.clone(),
                    ..Cell::default()
                });
            }
            let site = block.sites.iter().find(|site| site.way == arm.way());
            // What the gateway has before it is the databases.
            let first = arm != Arm::Gateway || !block.arms.contains(&Arm::Database);
            let held = Held {
                store: label.into(),
                arm: arm.name().into(),
                tenants,
                tier: site.and_then(|site| Some(site.described.as_ref()?.set?.to_string())),
                making_ns: site.filter(|_| first).map_or(0, |site| site.making_ns),
                disk: site.and_then(|site| site.disk),
                refused: why.clone(),
                seen: Vec::new(),
            };
            if let Some(tenants) = &mut self.results.tenants {
                (tenants.answer, _) = (block.people.answer(), tenants.held.push(held));
            }
            if why.is_some() {
                block.broken.push(arm);
            }
        }
        for (_, id) in block.phases.iter().filter(|(kind, _)| *kind != TOUCH.0) {
            self.results.cells.push(Cell {
                competitor: NULL.into(),
                phase: id.clone(),
                ..Cell::default()
            });
        }
        if let Some(described) = block.sites.iter().find_map(|site| site.described.as_ref()) {
            let told = told(described, block.target);
            self.results.settings.insert(format!("Store {label}"), told);
        }
    }

    async fn measure(&mut self, block: &mut Block<'_>, deadline: f64) -> Result<Option<Stopped>> {
        let mut costs = (Vec::new(), Vec::new());
        for arm in block.alive().collect::<Vec<_>>() {
            self.tell(Stage::Proving, &block.place(arm), "", (0, 1));
            if let Some(done) = self.rehearse(block, arm).await? {
                costs.0.extend(done.query.map(|window| each(&window)));
                costs.1.extend(done.insert.map(|window| each(&window)));
            }
        }
        if block.alive().next().is_none() {
            return Ok(None);
        }
        let left = (deadline - self.seconds()).max(0.0);
        let all_ns = 1e9 * (SHARE * left / ROOM).clamp(SECONDS.0, SECONDS.1);
        let window_ns = self.results.plan.window_ns as f64;
        let units =
            (plan::units(&costs.0, window_ns, all_ns), plan::units(&costs.1, window_ns, all_ns));
        let rule = StopRule { budget: deadline, ..self.results.plan.stop };
        let least = LEAST.min(rule.max_rounds);
        let mut stopping = rule.watch();
        // The null competitor has the last place.
        let count = block.arms.len() + 1;
        let mut orders = Orders::new(count, self.results.plan.seed.wrapping_add(self.made.into()));
        for round in 1.. {
            for (place, who) in orders.next_order().into_iter().enumerate() {
                if self.stop.is_set() {
                    return Ok(Some(Stopped::Interrupted));
                }
                let at = (place as u32, round <= LOOKS);
                match block.arms.get(who) {
                    Some(&arm) if block.broken.contains(&arm) => {}
                    Some(&arm) => self.turn(block, arm, units, at).await?,
                    None => self.null_turn(block, units, place as u32).await?,
                }
            }
            self.rounds += 1;
            self.save()?;
            if block.alive().next().is_none() {
                return Ok(None);
            }
            let narrow = || is_narrow(&self.results, block, rule.precision);
            match stopping.ends(round, Some(round), self.seconds(), narrow) {
                Some(Stopped::Budget) if round < least => {}
                Some(why) => return Ok(Some(why)),
                None => {}
            }
        }
        Ok(Some(Stopped::Rounds))
    }

    /// What all arms of a round are asked.
    fn draws(&self, block: &Block<'_>, (queries, inserts): (u64, u64)) -> Result<Draws> {
        let people = block.people;
        // Each arm takes as many of the same as it keeps open.
        let open = block.sites.iter().map(|site| site.spec.open).max().unwrap_or(0);
        let seed = self.results.plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seed = |n: u64| seed.wrapping_add(4 * u64::from(self.rounds) + n);
        Ok(Draws {
            touches: people.touches(plan::touches(people.tenants), seed(0)),
            asks: people.asks(queries, seed(1)),
            inserts: people.inserts(inserts, seed(2))?,
            firsts: people.firsts(people.tenants.min(open as u64), inserts)?,
        })
    }

    /// A turn before anything is timed: the proof, and what an operation takes. None where the arm is left out.
    async fn rehearse(&mut self, block: &mut Block<'_>, arm: Arm) -> Result<Option<Done>> {
        let draws = self.draws(block, (TRIED, TRIED / 2))?;
        let done = self.taken(block, arm, &draws, (false, true)).await;
        let Some(done) = self.or_broken(block, arm, done)? else { return Ok(None) };
        let row = self.results.competitors.iter_mut().find(|c| c.name == arm.name());
        if let Some(row) = row {
            let proof = row.proof.get_or_insert_with(Proof::default);
            proof.records += done.proved;
            proof.equal += done.proved;
            proof.of += block.people.tenants * block.people.documents;
        }
        Ok(Some(done))
    }

    async fn taken(
        &self,
        block: &mut Block<'_>,
        arm: Arm,
        draws: &Draws,
        (looks, proves): (bool, bool),
    ) -> Result<Done> {
        let turn = Turn {
            arm,
            people: block.people,
            draws,
            clock: Monotonic::default(),
            stop: &self.stop,
            program: self.options.program.as_deref(),
            looks,
            proves,
        };
        let site = block.sites.iter_mut().find(|site| site.way == arm.way());
        let site = site.ok_or_else(|| Error::invalid(format!("{arm} has no data")))?;
        turn.take(site).await
    }

    /// One arm's turn in a round.
    async fn turn(
        &mut self,
        block: &mut Block<'_>,
        arm: Arm,
        units: (u64, u64),
        (place, looks): (u32, bool),
    ) -> Result<()> {
        let cells = block.phases.len();
        self.tell(Stage::Timing, &block.place(arm), "", (place as usize * cells, cells));
        let draws = self.draws(block, units)?;
        let probe = self.instruments.probe(self.rounds);
        let done = self.taken(block, arm, &draws, (looks, false)).await;
        let Some(done) = self.or_broken(block, arm, done)? else { return Ok(()) };
        let remote = block.target.is_remote();
        self.note(block, arm.name(), done, (place, probe, remote));
        Ok(())
    }

    async fn null_turn(&mut self, block: &Block<'_>, units: (u64, u64), place: u32) -> Result<()> {
        let mut draws = self.draws(block, units)?;
        for ask in &mut draws.asks {
            // It gives as many records as it is asked for.
            ask.query.limit = Some(ask.wanted);
        }
        let probe = self.instruments.probe(self.rounds);
        let Some(site) = block.sites.first() else { return Ok(()) };
        let spec = Spec { open: usize::MAX, ..site.spec.clone() };
        let turn = Turn {
            arm: Arm::Shared,
            people: block.people,
            draws: &draws,
            clock: Monotonic::default(),
            stop: &self.stop,
            program: None,
            looks: false,
            proves: false,
        };
        let done = turn.null(site, Handles::of(spec, Arc::new(block.null.clone()))).await?;
        self.note(block, NULL, done, (place, probe, false));
        Ok(())
    }

    /// Leaves an arm out that breaks: that is no reason to know nothing of the others.
    fn or_broken(
        &mut self,
        block: &mut Block<'_>,
        arm: Arm,
        done: Result<Done>,
    ) -> Result<Option<Done>> {
        let at = format!("{}, round {}", block.place(arm), self.rounds + 1);
        match done {
            Ok(done) => Ok(Some(done)),
            Err(e) if self.stop.is_set() => Err(e),
            Err(e) if e.kind() == ErrorKind::Mismatch => Err(e.in_place(at)),
            Err(e) => {
                let why = format!("failed: {}", e.context());
                let own = self.results.cells.iter_mut().filter(|cell| {
                    cell.competitor == arm.name()
                        && block.phases.iter().any(|(_, id)| *id == cell.phase)
                });
                for cell in own.filter(|cell| cell.rounds.is_empty()) {
                    cell.refused = Some(why.clone());
                }
                let held = self.results.tenants.iter_mut().flat_map(|tenants| &mut tenants.held);
                let of = |held: &&mut Held| {
                    held.arm == arm.name()
                        && held.store == block.target.label
                        && held.tenants == block.people.tenants
                };
                held.filter(of).for_each(|held| held.refused = Some(why.clone()));
                self.results.dataset.remarks.push(format!("{at} broke, and was left out: {e}"));
                block.broken.push(arm);
                Ok(None)
            }
        }
    }

    /// Puts what a turn came to into the results.
    fn note(
        &mut self,
        block: &Block<'_>,
        name: &str,
        done: Done,
        (place, probe, remote): (u32, Probe, bool),
    ) {
        let Done { touch, query, insert, settled, mut seen, .. } = done;
        let round = self.rounds;
        let mut shares = crate::processors::Shares::default();
        let windows = [(QUERY.0, query), (INSERT.0, insert), (TOUCH.0, touch)];
        for (kind, window) in windows {
            let (Some(window), Some(id)) = (window, block.id(kind)) else { continue };
            if let Some(more) = &window.shares {
                shares = shares.plus(more);
            }
            let Some(at) = self.results.place(name, id) else { continue };
            let unsettled = kind == QUERY.0 && !settled;
            put(&mut self.results.cells[at], window, (round, place), unsettled);
            let phase = self.results.phases.iter_mut().find(|phase| phase.id == id);
            if let Some(phase) = phase {
                phase.units = self.results.cells[at].units;
            }
        }
        // What a server that is not ours has used is part of what others used: not known.
        let others = shares.others().filter(|_| !remote);
        let steal = shares.steal();
        self.results.probes.push(Probe {
            competitor: Some(name.to_owned()),
            others,
            steal,
            ..probe
        });
        seen.round = round;
        let held = self.results.tenants.iter_mut().flat_map(|tenants| &mut tenants.held);
        let of = |held: &&mut Held| {
            held.arm == name
                && held.store == block.target.label
                && held.tenants == block.people.tenants
        };
        if seen.memory.or(seen.files).or(seen.restart_ns).is_some() {
            held.filter(of).for_each(|held| held.seen.push(seen));
        }
    }
}

/// Adds a window to its cell.
fn put(cell: &mut Cell, window: Window, (round, place): (u32, u32), unsettled: bool) {
    let mut timed = window.used.round(round, round, place);
    if cell.rounds.is_empty() {
        cell.units = window.units;
    }
    timed.units = if window.units == cell.units { 0 } else { window.units };
    timed.unsettled = unsettled;
    cell.rounds.push(timed);
    cell.settled = cell.mostly_settled();
    let latency = Latency { response: window.latency, ..Latency::default() };
    match &mut cell.latency {
        Some(there) => there.add(&latency),
        none => *none = Some(latency),
    }
    let tally = Tally { done: window.units, ..Tally::default() };
    cell.tally = Some(cell.tally.unwrap_or_default().plus(tally));
}

/// Nanoseconds an operation took.
fn each(window: &Window) -> f64 {
    window.used.ns as f64 / window.units.max(1) as f64
}

/// Whether every comparison of queries and inserts of this block is as narrow as was asked.
fn is_narrow(results: &Results, block: &Block<'_>, precision: f64) -> bool {
    let of = |id: &str| {
        let kind = block.phases.iter().find(|(_, own)| own == id).map(|(kind, _)| *kind);
        kind.is_some_and(|kind| kind != TOUCH.0)
    };
    let cells = results.cells.iter().filter(|cell| of(&cell.phase) && cell.refused.is_none());
    let cells = cells.map(|cell| Cell {
        competitor: cell.competitor.clone(),
        phase: cell.phase.clone(),
        units: cell.units,
        rounds: cell.rounds.clone(),
        ..Cell::default()
    });
    let part = Results {
        bench: results.bench.clone(),
        plan: results.plan.clone(),
        baseline: results.baseline.clone(),
        competitors: results.competitors.clone(),
        phases: results
            .phases
            .iter()
            .filter(|phase| of(&phase.id))
            .cloned()
            .collect::<Vec<Phase>>(),
        cells: cells.collect(),
        contrasts: results.contrasts.iter().filter(|c| of(&c.of.1)).cloned().collect(),
        ..Results::default()
    };
    first_wide(&part, precision, 0).is_none()
}

/// What a store says of itself, for a page.
fn told(described: &Description, target: &Target) -> String {
    let version = match described.version.as_str() {
        "" => String::new(),
        version => format!(" {version}"),
    };
    let tier = described.set.map_or("not known".into(), |tier| tier.to_string());
    format!(
        "{}{version}, {}, client: {}; durability by its settings, the same for every arm: {tier}",
        described.product,
        target.connection(),
        described.client
    )
}
