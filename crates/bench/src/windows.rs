//! How many passes make a timed window: the same number for all competitors of a phase.
//!
//! A number for each by its own speed made windows of different lengths. On a busy machine a long
//! window holds the pauses in which another process runs, and a short one mostly does not, so that a
//! competitor was up to 1.8 times as slow as itself under another name. With the same number for all
//! the same work stands in the same kind of window, and the quickest decides how many passes that
//! takes. Every start chooses again, so that no luck of the warm-up stays for the whole run.

/// A run is to have room for at least this many starts: below 5 nothing has an interval, and one is
/// for what takes longer than expected.
pub(super) const STARTS: u32 = 6;

/// A phase, by what a pass takes its competitors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Nanoseconds of a pass of the quickest that is not the null competitor.
    pub quickest: f64,
    /// Nanoseconds of a pass of all of them, one after another.
    pub all: f64,
}

/// The passes of each row in a window: so many that the quickest takes `wanted` nanoseconds. Where a
/// round would then take longer than `allowed` nanoseconds, all windows are shortened alike, to one pass
/// at least.
pub(super) fn passes(rows: &[Row], wanted: f64, allowed: f64) -> Vec<u64> {
    let of = |share: f64| -> Vec<u64> {
        let fits = |row: &Row| (share * wanted / row.quickest.max(0.01)).ceil().max(1.0) as u64;
        rows.iter().map(fits).collect()
    };
    let takes = |passes: &[u64]| -> f64 {
        rows.iter().zip(passes).map(|(row, n)| row.all * *n as f64).sum()
    };
    let full = of(1.0);
    if takes(&full) <= allowed {
        return full;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        match takes(&of(middle)) <= allowed {
            true => low = middle,
            false => high = middle,
        }
    }
    of(low)
}

/// What a page says of the windows of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The shortest window that was chosen for want of time, in nanoseconds.
    shortest: Option<f64>,
}

impl Told {
    /// Notes what was chosen on a start, and says it.
    pub(crate) fn chosen(&mut self, rows: &[Row], passes: &[u64], wanted: f64) -> String {
        let windows = rows.iter().zip(passes).map(|(row, n)| row.quickest * *n as f64);
        let shortest = windows.fold(f64::INFINITY, f64::min);
        if shortest < 0.99 * wanted {
            self.shortest = Some(self.shortest.map_or(shortest, |s| s.min(shortest)));
        }
        let mut text = format!(
            "every competitor of a phase does the same number of passes in a window, so many that \
             the quickest takes {}; chosen again on each start",
            milliseconds(wanted)
        );
        if let Some(shortest) = self.shortest {
            text += &format!(
                ". The time allowed has room for {STARTS} starts only with shorter windows: {} at \
                 the shortest. More time, fewer formats or fewer records make them longer",
                milliseconds(shortest)
            );
        }
        text
    }
}

fn milliseconds(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 0.01 => format!("{:.1} µs", ns / 1e3),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn row(quickest: f64, all: f64) -> Row {
        Row { quickest: quickest * MS, all: all * MS }
    }

    #[test]
    fn the_quickest_decides_and_its_window_is_long_enough() {
        let rows = [row(3.0, 40.0), row(0.001, 5.0), row(400.0, 2000.0)];
        let found = passes(&rows, 50.0 * MS, f64::INFINITY);
        assert_eq!(found, [17, 50_000, 1]);
        for (row, n) in rows.iter().zip(&found) {
            assert!(row.quickest * *n as f64 >= 50.0 * MS);
        }
        let told = Told::default().chosen(&rows, &found, 50.0 * MS);
        assert!(told.contains("the quickest takes 50 ms") && !told.contains("shorter"), "{told}");
    }

    #[test]
    fn where_the_time_is_short_all_windows_are_shortened_alike() {
        let rows = [row(2.0, 40.0), row(5.0, 40.0), row(400.0, 2000.0)];
        let found = passes(&rows, 50.0 * MS, 2700.0 * MS);
        let took: f64 = rows.iter().zip(&found).map(|(r, n)| r.all / MS * *n as f64).sum();
        assert!(took <= 2700.0 && took > 2500.0, "{found:?} {took}");
        assert!(found[0] > 2 * found[1] - 2 && found[2] == 1, "{found:?}");
        // Less than a pass there is not.
        assert_eq!(passes(&rows, 50.0 * MS, 0.0), [1, 1, 1]);
        let mut told = Told::default();
        let said = told.chosen(&rows, &[1, 1, 1], 50.0 * MS);
        assert!(said.contains("room for 6 starts") && said.contains("2.00 ms at"), "{said}");
        // Later starts with longer ones do not take that back.
        assert_eq!(told.chosen(&rows, &[25, 10, 1], 50.0 * MS), said);
    }
}
