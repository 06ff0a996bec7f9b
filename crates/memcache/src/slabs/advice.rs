//! Settings under which the same items take fewer pages, and what is to be warned of.

use std::fmt;

use super::{Census, Classes, Load, PAGE, Settings, settings::CLASSES};
use crate::Result;

/// What settings come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The settings.
    pub settings: Settings,
    /// Pages for all items.
    pub pages: u64,
    /// The share of the pages that is keys and values, 0 to 1.
    pub efficiency: f64,
}

impl Outcome {
    fn of(settings: Settings, census: &Census) -> Result<Outcome> {
        let load = Load::new(&Classes::new(&settings)?, census);
        Ok(Outcome { settings, pages: load.pages(), efficiency: load.efficiency() })
    }
}

/// The factors that are tried.
const FACTORS: [f64; 12] = [1.05, 1.08, 1.1, 1.125, 1.14, 1.17, 1.2, 1.25, 1.3, 1.5, 1.75, 2.0];
/// The smallest chunks that are tried.
const CHUNKS: [u64; 6] = [8, 24, 48, 80, 128, 256];

/// What other settings come to, the fewest pages first: factors, smallest chunks, and sizes made for
/// these items. The settings as they are come with them.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for settings that a server refuses.
pub fn what_if(settings: &Settings, census: &Census) -> Result<Vec<Outcome>> {
    let now = Outcome::of(settings.clone(), census)?;
    let mut outcomes = Vec::new();
    for factor in FACTORS {
        for chunk in CHUNKS {
            let other = Settings { factor, chunk, slab_sizes: None, ..settings.clone() };
            outcomes.push(Outcome::of(other, census)?);
        }
    }
    if let Some(sizes) = best_sizes(settings, census) {
        let other =
            Settings { slab_sizes: Some(sizes), chunk: 1, factor: 1.25, ..settings.clone() };
        outcomes.push(Outcome::of(other, census)?);
    }
    outcomes.retain(|other| other.settings != now.settings);
    outcomes.push(now);
    // Of equals the one that is, then those nearest to the usual.
    outcomes.sort_by(|a, b| {
        let odd = |o: &Outcome| {
            let s = &o.settings;
            (s != settings, s.slab_sizes.is_some(), s.chunk.abs_diff(48))
        };
        let far = |o: &Outcome| (o.settings.factor - 1.25).abs();
        a.pages.cmp(&b.pages).then(odd(a).cmp(&odd(b))).then(far(a).total_cmp(&far(b)))
    });
    Ok(outcomes)
}

/// The sizes of slabs under which these items take the least: the best cut of all sizes there are
/// into as many runs as there may be classes (dynamic programming over at most 400 sizes).
pub fn best_sizes(settings: &Settings, census: &Census) -> Option<Vec<u64>> {
    const MOST: usize = 400;
    let largest = settings.largest();
    let mut sizes: Vec<(u64, u64)> = Vec::new();
    for (item, count) in census.sizes() {
        let placed = item.total(settings);
        if placed <= largest {
            sizes.push((placed.next_multiple_of(8), count));
        }
    }
    sizes.sort_unstable();
    sizes.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let total: u64 = sizes.iter().map(|(_, count)| count).sum();
    // Too many sizes are put together into runs of about as many items each.
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let share = if sizes.len() <= MOST { 0 } else { total / MOST as u64 };
    let mut sum = 0;
    for (at, &(size, count)) in sizes.iter().enumerate() {
        sum += count;
        let apart = runs.last().is_none_or(|(last, _)| size > last + 8);
        if (sum > share && apart) || at + 1 == sizes.len() {
            // The last one is put in place of one it is too near to.
            if !apart && let Some((_, near)) = runs.pop() {
                sum += near;
            }
            runs.push((size, sum));
            sum = 0;
        }
    }
    if runs.is_empty() {
        return None;
    }
    Some(cut(&runs, CLASSES - 1))
}

/// Cuts runs into at most `most` classes, so that chunks times what a chunk costs is least.
fn cut(runs: &[(u64, u64)], most: usize) -> Vec<u64> {
    let before: Vec<u64> = std::iter::once(0)
        .chain(runs.iter().scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        }))
        .collect();
    // What the items from `from` up to `to` cost in chunks of the last one's size: a share of a
    // page each, and half a page for the class.
    let cost = |from: usize, to: usize| {
        let per_page = PAGE / runs[to - 1].0;
        (before[to] - before[from]) as f64 / per_page as f64 + 0.5
    };
    let n = runs.len();
    let mut best = vec![f64::INFINITY; n + 1];
    best[0] = 0.0;
    let mut froms: Vec<Vec<usize>> = Vec::new();
    let (mut least, mut levels) = (f64::INFINITY, 0);
    for level in 1..=most.min(n) {
        let (mut next, mut from) = (vec![f64::INFINITY; n + 1], vec![0; n + 1]);
        for to in level..=n {
            for (start, before) in best[..to].iter().enumerate().skip(level - 1) {
                let sum = before + cost(start, to);
                if sum < next[to] {
                    (next[to], from[to]) = (sum, start);
                }
            }
        }
        best = next;
        froms.push(from);
        if best[n] < least {
            (least, levels) = (best[n], level);
        }
    }
    let (mut to, mut sizes) = (n, Vec::new());
    for from in froms[..levels].iter().rev() {
        sizes.push(runs[to - 1].0);
        to = from[to];
    }
    sizes.reverse();
    sizes
}

/// Something about a load that people should know.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// There were too many classes: sizes above the first number, up to the second, all go to
    /// the last; so many items do.
    Gap(u64, u64, u64),
    /// One class has nearly all pages: its number, its share.
    Flood(usize, f64),
    /// So many items are cut into pieces of the largest chunk.
    Cut(u64),
    /// Items that the server refuses.
    Refused(u64),
    /// The items need more pages than there are: needed, there.
    Full(u64, u64),
    /// So many classes are in use, which is much for so many pages.
    Thin(usize, u64),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Gap(from, to, items) => write!(
                f,
                "the factor is so small that the 63 classes run out: items of {from} to {to} bytes all \
                 take chunks of {to}; {items} items do"
            ),
            Warning::Flood(class, share) => write!(
                f,
                "class {class} has {:.0} % of all pages, so most evictions happen there; slab \
                 sizes within its range would split it",
                share * 100.0
            ),
            Warning::Cut(items) => write!(
                f,
                "{items} items are larger than the largest chunk and are cut into pieces, which are \
                 counted in other classes than `stats items` says"
            ),
            Warning::Refused(items) => {
                write!(f, "{items} items are larger than -I, and are refused")
            }
            Warning::Full(need, there) => write!(
                f,
                "{need} pages are needed and {there} exist: items will be evicted, and pages stay \
                 with the classes that took them first until the page mover acts (it is slow; \
                 sizes that change over the day suffer from it)"
            ),
            Warning::Thin(classes, pages) => write!(
                f,
                "{classes} classes share {pages} pages: half a page of each is empty on average; a \
                 larger factor or fewer sizes would help"
            ),
        }
    }
}

/// What is to be warned of.
pub fn warnings(classes: &Classes, load: &Load) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let pages = load.pages();
    if let Some((from, to)) = classes.gap() {
        let items = load.classes.last().map_or(0, |last| last.items);
        warnings.push(Warning::Gap(from, to, items));
    }
    if let Some(most) = load.classes.iter().max_by_key(|usage| usage.pages) {
        let share = most.pages as f64 / pages.max(1) as f64;
        if pages >= 10 && share > 0.8 {
            warnings.push(Warning::Flood(most.class.id, share));
        }
    }
    if load.cut > 0 {
        warnings.push(Warning::Cut(load.cut));
    }
    if load.refused > 0 {
        warnings.push(Warning::Refused(load.refused));
    }
    let there = classes.settings().memory;
    if pages > there {
        warnings.push(Warning::Full(pages, there));
    }
    let used = load.classes.iter().filter(|usage| usage.pages > 0).count();
    if used > 4 && pages < 4 * used as u64 {
        warnings.push(Warning::Thin(used, pages));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slabs::Item;

    #[test]
    fn sizes_made_for_the_items_take_the_fewest_pages() {
        let settings = Settings::default();
        for census in [
            (0..50_000).map(|n| Item::new(20, 500 + n % 7)).collect::<Census>(),
            (0..50_000).map(|n| Item::new(20, 50 + n * 13 % 3000)).collect(),
            (0..50_000).map(|n| Item::new(20, [70, 1100, 9000][n % 3])).collect(),
        ] {
            let outcomes = what_if(&settings, &census).unwrap();
            let now = outcomes.iter().find(|o| o.settings == settings).unwrap();
            let made = outcomes.iter().find(|o| o.settings.slab_sizes.is_some()).unwrap();
            assert!(made.pages <= now.pages, "{} {}", made.pages, now.pages);
            assert!(made.pages <= outcomes[0].pages + 1, "{} {}", made.pages, outcomes[0].pages);
            made.settings.check().unwrap();
        }
    }

    #[test]
    fn what_is_odd_is_warned_of() {
        let warned = |settings: Settings, census: Census| {
            let classes = Classes::new(&settings).unwrap();
            warnings(&classes, &Load::new(&classes, &census))
        };
        let many = |value: u64| (0..200_000).map(|_| Item::new(20, value)).collect::<Census>();
        let small = Settings { factor: 1.05, ..Settings::default() };
        let found = warned(small, many(500));
        assert!(
            matches!(found[..], [Warning::Gap(..), Warning::Flood(..), Warning::Full(..)]),
            "{found:?}"
        );
        let large = [Item::new(9, 600_000), Item::new(9, 2 << 20)].into_iter().collect();
        let found = warned(Settings::default(), large);
        assert!(found.contains(&Warning::Cut(1)) && found.contains(&Warning::Refused(1)));
    }
}
