//! One store's turn in a round: it is started, does the phases of the workload, and their results are
//! added to those of the run.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use super::{NULL, Opened, Run, STORE, Target, null::Null, turn::Turn, watch};
use crate::{
    Error, ErrorKind, Result,
    instruments::Instruments,
    processors::Shares,
    results::{self, Probe, ServerUse},
    run::{Measured, Stage},
    store::Store,
};

/// Where a store's turn takes place.
struct At {
    /// In the order of the round.
    place: u32,
    /// The folder of its data, and what was in it before.
    folder: Option<(PathBuf, results::Bytes)>,
    url: String,
}

/// What is in a store at the end.
struct Kept {
    disk: Option<results::Bytes>,
    records: u64,
}

impl Run<'_, '_, '_> {
    /// One store's turn: `who` is the number of a target, or of the null competitor after them.
    pub(super) async fn turn(&mut self, who: usize, place: u32) -> Result<()> {
        let target = self.targets.get(who).cloned();
        let label = target.as_ref().map_or(NULL.to_owned(), |t| t.label.clone());
        if self.broken.contains(&label) {
            return Ok(());
        }
        self.tell(Stage::Preparing, &label, "", (0, self.results.phases.len()));
        let mut opened = match &target {
            Some(target) => Some(self.open(target).await.map_err(|e| e.in_place(label.as_str()))?),
            None => None,
        };
        let folder = opened.as_ref().and_then(|o| self.data_of(o));
        let empty = opened.as_ref().and_then(|o| o.server.as_ref()).map(watch::used);
        let (mut tables, mut names) = (HashMap::new(), HashMap::new());
        for table in &self.options.workload.tables {
            let store = match (&target, &opened) {
                (Some(target), Some(opened)) => {
                    names.insert(table.name.clone(), self.made.name(target, &table.name));
                    self.store(target, &opened.place, &table.name)?
                }
                _ => Arc::new(Null::of(self.records_of(&table.name)?)?) as Arc<dyn Store>,
            };
            tables.insert(table.name.clone(), store);
        }
        // Of a store of ours none is kept beside those of the turn, which may close it.
        let own = target.as_ref().is_some_and(Target::is_own);
        let stores: Vec<Arc<dyn Store>> = tables.values().filter(|_| own).cloned().collect();
        let probe = self.instruments.probe(self.rounds);
        self.shares = Shares::default();
        let url = opened.as_ref().map(|opened| opened.url.clone());
        let at = At { place, folder, url: url.unwrap_or_default() };
        let done = self.phases(&label, at, opened.as_mut(), (tables, names)).await;
        // What a server that is not ours has used is part of what others used: not known.
        let known = Some(self.shares).filter(|_| !target.as_ref().is_some_and(Target::is_remote));
        self.results.probes.push(Probe {
            competitor: Some(label.clone()),
            others: known.and_then(|shares| shares.others()),
            steal: self.shares.steal(),
            ..probe
        });
        for store in &stores {
            // Also where it failed: what is the user's is left as it was.
            let dropped = store.drop_table().await;
            if let (Err(left), Ok(_)) = (dropped, &done) {
                self.leaves(&label, &left);
            }
        }
        let Kept { disk, records } = done?;
        if let Some(bytes) = disk {
            let now = opened.as_ref().and_then(|o| o.server.as_ref()).map(watch::used);
            let memory = |used: Option<ServerUse>| used.map_or(0, |used| used.memory);
            let disk = results::Disk {
                start: self.rounds,
                data: bytes.data,
                logs: bytes.logs,
                records,
                memory_empty: memory(empty),
                memory: memory(now),
            };
            let row = self.results.competitors.iter_mut().find(|c| c.name == label);
            if let Some(kept) = row.and_then(|row| row.store.as_mut()) {
                kept.disk.push(disk);
            }
        }
        drop(stores);
        Ok(())
    }

    /// The folder of a store's data, where it is known, and what is in it.
    fn data_of(&self, opened: &Opened) -> Option<(PathBuf, results::Bytes)> {
        let folder = match &opened.server {
            Some(server) => server.data().to_owned(),
            None => self.scratch.path().join(STORE),
        };
        let there = folder.is_dir().then(|| watch::allocated(&folder))?;
        Some((folder, there))
    }

    async fn phases(
        &mut self,
        label: &str,
        at: At,
        opened: Option<&mut Opened>,
        (tables, names): (HashMap<String, Arc<dyn Store>>, HashMap<String, String>),
    ) -> Result<Kept> {
        let options = self.options;
        let workload = &options.workload;
        let own = self.targets.iter().any(|target| target.label == label && target.is_own());
        let records = std::mem::take(&mut self.records);
        let seed = self.results.plan.seed.wrapping_add(u64::from(self.rounds));
        let mut turn = Turn::new(workload, &records, tables, opened, seed);
        (turn.names, turn.url) = (names, at.url);
        turn.folder = at.folder.filter(|_| !own);
        (turn.own, turn.program) = (own, options.program.clone());
        // What keeps nothing is asked as all others are; where they differ, as a server: one thread
        // does the work of all, which shows the most that the harness can cost.
        let target = self.targets.iter().find(|target| target.label == label);
        turn.embedded = match target {
            Some(target) => target.is_embedded(),
            None => self.targets.iter().all(Target::is_embedded),
        };
        turn.around = target.map(|target| self.wrapping(target)).unwrap_or_default();
        turn.explains = self.rounds == 0;
        turn.ended = self.stop.clone();
        turn.lossy = self.lossy.contains(label);
        let mut ended = Ok(());
        for (p, phase) in workload.phases.iter().enumerate() {
            if self.stopped() {
                break;
            }
            self.tell(Stage::Timing, label, &phase.name, (p, workload.phases.len()));
            let cells = self.results.cells.iter();
            let cell = cells.clone().position(|c| c.competitor == label && c.phase == phase.name);
            let Some(cell) = cell else { continue };
            if self.results.cells[cell].refused.is_some() {
                // Its table may be needed all the same.
                let _ = self.stop.interruptible(turn.run(phase, &self.expected[p])).await;
                continue;
            }
            // Also while an operation waits for a server that has stopped.
            let acted = self.stop.interruptible(turn.run(phase, &self.expected[p]));
            match acted.await {
                Ok(done) => {
                    let seconds = done.used.ns as f64 / 1e9;
                    let of = (p + 1, workload.phases.len());
                    let measured = Measured { units: done.units, unit: phase.unit(), seconds };
                    self.note(cell, done, at.place);
                    self.tell_of(Stage::Timing, label, &phase.name, of, Some(measured));
                }
                Err(e) if e.kind() == ErrorKind::Unsupported => {
                    self.results.cells[cell].refused = Some(e.context().to_owned());
                }
                // A store that breaks is no reason to know nothing of the others.
                Err(e) if e.is_outage() && !self.stopped() => {
                    self.broke(label, &phase.name, &e);
                    break;
                }
                Err(e) => {
                    let at = format!("{label}, {}, round {}", phase.name, self.rounds + 1);
                    ended = Err(e.in_place(at));
                    break;
                }
            }
        }
        let kept = Kept { disk: turn.disk(), records: turn.kept() };
        let told = std::mem::take(&mut turn.told);
        drop(turn);
        self.records = records;
        for (what, how) in told {
            self.results.settings.insert(format!("{label}, {what}"), how);
        }
        ended.map(|()| kept)
    }

    /// Leaves a store out from here on, because it broke in a phase.
    fn broke(&mut self, label: &str, phase: &str, error: &Error) {
        let why = format!("failed: {}", error.context());
        let mut reached = false;
        for cell in self.results.cells.iter_mut().filter(|c| c.competitor == label) {
            let here = cell.phase == phase;
            reached |= here;
            if reached && cell.rounds.is_empty() && cell.refused.is_none() {
                cell.refused = Some(if here { why.clone() } else { format!("{phase} {why}") });
            }
        }
        let round = self.rounds + 1;
        let remark = format!(
            "{label} broke in phase {phase} of round {round}, and was left out after it: {error}"
        );
        self.results.dataset.remarks.push(remark);
        self.broken.insert(label.to_owned());
    }

    /// What was measured holds, but a table is left in a store of the user's: both are said.
    fn leaves(&mut self, label: &str, left: &Error) {
        let remark = format!("{label}: a table of this run could not be dropped: {left}");
        self.results.dataset.remarks.push(remark);
        self.broken.insert(label.to_owned());
    }
}
