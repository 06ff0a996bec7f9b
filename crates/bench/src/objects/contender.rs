//! A format in the run: objects to bytes and back, plain and in each wrap.

use std::hint::black_box;

use super::plan::Series;
use crate::{
    Error, Result,
    format::{Coder, Format, Wrap, Wrapped},
    layout::{Laid, shift},
    record::dataset::objects::Object,
    results::{Phase, Proof},
    run::{Competitor, Counts},
    stop::Stop,
};

/// One way to write objects: the format, with a wrap around it or none.
struct Way {
    coder: Coder,
    laid: Laid,
}

impl Way {
    fn new(format: Format, wrap: Option<Wrap>) -> Result<Way> {
        let coder = Coder::new(Wrapped { format, wraps: wrap.into_iter().collect() })?;
        Ok(Way { coder, laid: Laid::default() })
    }
}

/// A format that takes part.
pub(super) struct Contender<'a> {
    objects: &'a [Object],
    /// Plain first, then one for each wrap of the plan.
    ways: Vec<Way>,
    out: Vec<u8>,
    /// What is written begins so far into `out`.
    shift: usize,
    stop: Stop,
}

impl<'a> Contender<'a> {
    pub(super) fn new(
        format: Format,
        wraps: &[Wrap],
        objects: &'a [Object],
        stop: &Stop,
    ) -> Result<Self> {
        let ways = [None].into_iter().chain(wraps.iter().copied().map(Some));
        let ways = ways.map(|wrap| Way::new(format, wrap)).collect::<Result<_>>()?;
        Ok(Contender { objects, ways, out: Vec::new(), shift: 0, stop: stop.clone() })
    }

    /// Writes every object in every way, reads it back and compares (rule 1). Returns what came
    /// back, and how many bytes each way made.
    ///
    /// # Errors
    /// Where the run is to end.
    pub(super) fn prove(&mut self) -> Result<(Proof, Vec<u64>)> {
        let info = self.ways[0].coder.wrapped().format.info();
        let mut proof = Proof {
            records: self.objects.len() as u64,
            of: self.objects.len() as u64,
            declared: info.loses.to_owned(),
            ..Proof::default()
        };
        let mut sizes = vec![0; self.ways.len()];
        for (i, object) in self.objects.iter().enumerate() {
            self.stop.check()?;
            let (mut equal, mut refused) = (true, false);
            for (way, size) in self.ways.iter_mut().zip(&mut sizes) {
                self.out.clear();
                let outcome = match way.coder.encode(object, &mut self.out) {
                    Err(e) => {
                        refused = true;
                        Err(e)
                    }
                    Ok(()) => way.coder.decode::<Object>(&self.out),
                };
                *size += self.out.len() as u64;
                let text = match outcome {
                    Ok(back) if back == *object => continue,
                    Ok(_) => "came back different".to_owned(),
                    Err(e) => format!("{e:?}"),
                };
                equal = false;
                proof.first.get_or_insert_with(|| {
                    format!("object {}, {}: {text}", i + 1, way.coder.wrapped())
                });
            }
            proof.equal += u64::from(equal);
            proof.refused += u64::from(refused);
        }
        Ok((proof, sizes))
    }

    fn load(&mut self, way: usize, size: usize, units: u64, counts: &mut Counts) -> Result<()> {
        let Way { coder, laid } = &mut self.ways[way];
        for span in laid.spans().take(size).cycle().take(units as usize) {
            self.stop.check()?;
            let object: Object = coder.decode(span)?;
            counts.items += black_box(object).tags.len() as u64;
            counts.bytes += span.len() as u64;
            counts.done += 1;
        }
        Ok(())
    }
}

impl Competitor for Contender<'_> {
    fn prepare(&mut self, start: u32) -> Result<()> {
        self.shift = shift(start);
        self.out = vec![0; self.shift];
        for Way { coder, laid } in &mut self.ways {
            *laid = Laid::default();
            let stop = &self.stop;
            *laid = Laid::out(start, self.objects, |object, out| {
                stop.check()?;
                coder.encode(object, out)
            })?;
        }
        Ok(())
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        let (series, way) = Series::of(phase, self.ways.iter().map(|w| w.coder.wrapped()))?;
        let size = phase.units as usize;
        let mut counts = Counts::default();
        if series == Series::Load {
            self.load(way, size, units, &mut counts)?;
            return Ok(counts);
        }
        let coder = &mut self.ways[way].coder;
        let (out, shift) = (&mut self.out, self.shift);
        for object in self.objects[..size].iter().cycle().take(units as usize) {
            self.stop.check()?;
            match series {
                Series::Create => {
                    counts.items += black_box(object.clone()).tags.len() as u64;
                }
                Series::CreateDump => {
                    let object = black_box(object.clone());
                    out.truncate(shift);
                    coder.encode(&object, out)?;
                    counts.items += object.tags.len() as u64;
                    counts.bytes += black_box(&out[shift..]).len() as u64;
                }
                Series::DumpLoad => {
                    out.truncate(shift);
                    coder.encode(object, out)?;
                    counts.bytes += black_box(&out[shift..]).len() as u64;
                    let object: Object = coder.decode(&out[shift..])?;
                    counts.items += black_box(object).tags.len() as u64;
                }
                Series::Load => {}
            }
            counts.done += 1;
        }
        Ok(counts)
    }
}

/// What the loop costs by itself.
pub(super) struct Null<'a>(pub &'a [Object], pub Stop);

impl Competitor for Null<'_> {
    fn prepare(&mut self, _: u32) -> Result<()> {
        Ok(())
    }

    fn run(&mut self, phase: &Phase, units: u64) -> Result<Counts> {
        let mut counts = Counts::default();
        let objects = self.0.get(..phase.units as usize).ok_or_else(|| {
            Error::invalid(format!("{} objects asked of {}", phase.units, self.0.len()))
        })?;
        for object in objects.iter().cycle().take(units as usize) {
            self.1.check()?;
            counts.items += black_box(object).tags.len() as u64;
            counts.done += 1;
        }
        Ok(counts)
    }
}
