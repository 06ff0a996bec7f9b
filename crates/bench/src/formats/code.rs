//! Whose reader and writer was measured, as results say it.

use std::collections::BTreeMap;

use crate::{
    format::{By, Code},
    results,
};

/// Reader and writer by name; crates with their version, which `software` has.
pub(crate) fn of(code: Code, software: &BTreeMap<String, String>) -> results::Code {
    let name = |by: By| match by {
        By::Own => "own".to_owned(),
        By::OwnSerde => "own, by serde".to_owned(),
        By::Crate(name) => match software.get(name) {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        },
    };
    results::Code { reads: name(code.reads), writes: name(code.writes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format::Format, machine};

    /// A crate that goes from the manifest, or a name misspelled here, is found.
    #[test]
    fn every_crate_named_has_a_version() {
        let software = machine::software();
        for format in Format::ALL {
            for code in [format.info().marc, format.info().values] {
                for by in [code.reads, code.writes] {
                    if let By::Crate(name) = by {
                        assert!(software.contains_key(name), "{}: {name}", format.name());
                    }
                }
            }
        }
        let code = of(Format::Sonic.info().marc, &software);
        assert_eq!(code.reads, format!("sonic-rs {}", software["sonic-rs"]));
        assert_eq!(of(Format::Json.info().marc, &software).writes, "own");
    }
}
