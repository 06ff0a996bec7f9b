//! Tests that are left out for want of something that is not on this machine.
//!
//! What is not there is a [`Missing`], and [`need!`] leaves the test with it. It is then said and counted
//! that the test was left out: where `STEELYARD_SKIPS` names a file, as `scripts/test` does, each skip is a
//! line of it (the test, a tab, why). Where `STEELYARD_REQUIRE_SERVERS=1`, the test fails instead.
//! `tidy/skips.rs` finds tests that leave by a way of their own. The library's own tests have this file, too.

use std::{
    fmt::Display,
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// What a test needs, or why it is not there.
pub type Need<T = ()> = Result<T, Missing>;

/// Something that is not on this machine. Dropped by whoever does not say it, it says itself.
#[derive(Debug)]
pub struct Missing {
    why: String,
    said: AtomicBool,
}

impl Missing {
    #[track_caller]
    pub fn new(why: impl Display) -> Missing {
        let required = std::env::var_os("STEELYARD_REQUIRE_SERVERS").is_some_and(|v| v == "1");
        assert!(!required, "STEELYARD_REQUIRE_SERVERS=1, and {why}");
        Missing::allowed(why)
    }

    /// Something that may be missing also where everything is required: nothing that can be installed
    /// would have it.
    pub fn allowed(why: impl Display) -> Missing {
        Missing { why: why.to_string(), said: AtomicBool::new(false) }
    }

    /// Says that this test is left out, and counts it.
    pub fn say(&self) {
        self.said.store(true, Relaxed);
        println!("skipped: {}", self.why);
        // Not a skip: nobody counts.
        let Some(file) = std::env::var_os("STEELYARD_SKIPS") else { return };
        let thread = std::thread::current();
        let why = self.why.replace(['\n', '\t'], " ");
        let line = format!("{}\t{why}\n", thread.name().unwrap_or("a test"));
        let opened = OpenOptions::new().append(true).create(true).open(&file);
        // In one piece, as other tests write there, too.
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|e| panic!("{}: {e}", Path::new(&file).display()));
    }
}

impl Clone for Missing {
    fn clone(&self) -> Missing {
        Missing::allowed(&self.why)
    }
}

impl Drop for Missing {
    fn drop(&mut self) {
        if !self.said.load(Relaxed) {
            self.say();
        }
    }
}

/// What is needed; without it, the test is left here, or what stands after the comma is done: `continue`.
macro_rules! need {
    ($need:expr) => {
        $crate::skips::need!($need, return)
    };
    ($need:expr, $leave:expr) => {
        match $need {
            Ok(there) => there,
            Err(missing) => {
                missing.say();
                $leave
            }
        }
    };
}
pub(crate) use need;

/// Leaves something out for a reason that no other function here has.
#[track_caller]
pub fn skip(why: impl Display) {
    Missing::new(why).say();
}
