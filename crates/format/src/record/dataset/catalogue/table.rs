//! Which fields records have: the figures counted in 11,428 real ones, and what writes each.

use super::{
    codes, holdings,
    maker::Maker,
    names, notes, numbers,
    plan::{Age, Case, Kind::*, Library},
    subjects, titles,
};

/// A field that records may have.
pub(super) struct Row {
    pub tag: &'static str,
    /// The share of all records that have it, 0 to 1.
    pub share: f64,
    /// How often it is there, where it is.
    pub times: Times,
    /// Which records can have it at all; `share` is met among these.
    pub among: fn(Case) -> bool,
    /// Writes one.
    pub make: fn(&mut Maker),
}

impl Row {
    /// True for what there can be more or less of, to make records longer or shorter.
    pub(super) fn is_elastic(&self) -> bool {
        match self.times {
            Once => false,
            Few(mean) => mean >= 1.25 && self.tag != "264",
            Many(_) => true,
        }
    }

    /// True for what describes the work, not the library's copy or its own numbers.
    pub(super) fn describes(&self) -> bool {
        !matches!(self.tag, "001" | "003" | "005" | "040" | "049" | "583")
            && !self.tag.starts_with(['8', '9'])
            && !self.tag.starts_with("59")
            && !self.tag.starts_with("09")
            || self.tag == "830"
    }
}

/// How often a field is there, where it is there at all.
#[derive(Clone, Copy)]
pub(super) enum Times {
    Once,
    /// So often on average: mostly once.
    Few(f64),
    /// So often on average: mostly once or twice, in some records a hundred times.
    Many(f64),
}
use Times::*;

const fn row(
    tag: &'static str,
    share: f64,
    times: Times,
    among: fn(Case) -> bool,
    make: fn(&mut Maker),
) -> Row {
    Row { tag, share, times, among, make }
}

fn all(_: Case) -> bool {
    true
}
fn title(c: Case) -> bool {
    c.kind.is_title()
}
fn authority(c: Case) -> bool {
    c.kind.is_authority()
}
fn holding(c: Case) -> bool {
    matches!(c.kind, Copy | Volumes)
}
fn text(c: Case) -> bool {
    matches!(c.kind, Book | Other | Serial | Manuscript)
}
fn book(c: Case) -> bool {
    matches!(c.kind, Book | Other)
}
fn modern_book(c: Case) -> bool {
    book(c) && c.age != Age::Old
}
fn sound(c: Case) -> bool {
    matches!(c.kind, Music | Talk | Score)
}
fn serial(c: Case) -> bool {
    c.kind == Serial
}
fn map(c: Case) -> bool {
    c.kind == Map
}
fn old_rules(c: Case) -> bool {
    title(c) && !c.new_rules()
}
fn new_rules(c: Case) -> bool {
    title(c) && c.new_rules()
}
fn stacks(c: Case) -> bool {
    c.library == Library::Stacks
}
fn campus(c: Case) -> bool {
    c.library == Library::Campus && title(c)
}
fn shared(c: Case) -> bool {
    c.library == Library::Shared
}
fn millennium(c: Case) -> bool {
    c.library == Library::Millennium
}
fn holdings_library(c: Case) -> bool {
    c.library == Library::Holdings && title(c)
}
fn items(c: Case) -> bool {
    c.library == Library::Items
}
fn national(c: Case) -> bool {
    c.library == Library::National
}
fn counted(c: Case) -> bool {
    c.library == Library::Campus || stacks(c)
}
fn stands(c: Case) -> bool {
    holding(c) || shared(c) || items(c) || holdings_library(c)
}

/// In the order in which they stand in a record.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    row("001", 1.0, Once, all, codes::control),
    row("003", 0.556, Once, all, codes::control_mark),
    row("005", 0.727, Once, all, codes::changed),
    row("006", 0.060, Once, title, codes::material),
    row("007", 0.207, Few(1.1), title, codes::physical),
    row("008", 0.992, Once, all, codes::fixed),
    row("010", 0.292, Once, title, numbers::lccn),
    row("015", 0.052, Few(1.02), national_or_old, numbers::national_number),
    row("016", 0.020, Once, title, numbers::agency_number),
    row("019", 0.054, Few(1.03), title, numbers::merged),
    row("020", 0.339, Few(1.41), modern_book, numbers::isbn),
    row("022", 0.034, Few(1.08), serial, numbers::issn),
    row("024", 0.025, Few(1.2), sound, numbers::other_number),
    row("028", 0.040, Few(1.33), sound, numbers::label_number),
    row("029", 0.08, Few(1.8), title, numbers::agency_number),
    row("034", 0.007, Once, map, codes::map_numbers),
    row("035", 0.717, Few(2.55), title, numbers::system_number),
    row("037", 0.015, Once, title, codes::source_of_stock),
    row("039", 0.082, Once, national_or_authority, codes::system_history),
    row("040", 0.815, Once, all, codes::cataloguer),
    row("041", 0.127, Once, title, codes::languages),
    row("042", 0.158, Once, title, codes::authenticated),
    row("043", 0.232, Once, title, codes::area),
    row("049", 0.273, Once, title, codes::held),
    row("050", 0.422, Few(1.02), title, codes::class),
    row("066", 1.0, Once, linked, codes::scripts),
    row("072", 0.015, Once, book, codes::subject_code),
    row("079", 0.041, Once, national_or_authority, codes::system_identity),
    row("082", 0.255, Few(1.01), text, codes::dewey),
    row("084", 0.037, Few(1.54), national, codes::other_class),
    row("086", 0.015, Once, text, codes::document_number),
    row("090", 0.238, Few(1.07), title, codes::local_class),
    row("099", 0.044, Once, title, codes::local_shelf),
    row("100", 0.572, Few(1.01), title, names::main_person),
    row("100", 0.036, Once, |c| c.kind == PersonName, subjects::authority),
    row("110", 0.040, Once, title, names::main_body),
    row("110", 0.016, Once, |c| c.kind == BodyName, subjects::authority),
    row("111", 0.008, Once, text, names::meeting),
    row("130", 0.015, Once, title, titles::title_heading),
    row("150", 0.033, Once, |c| c.kind == Topic, subjects::authority),
    row("151", 0.0094, Once, |c| c.kind == PlaceName, subjects::authority),
    row("240", 0.084, Few(1.01), title, titles::uniform_title),
    row("245", 0.852, Few(1.01), title, titles::title),
    row("246", 0.096, Few(1.45), title, titles::other_title),
    row("250", 0.120, Few(1.07), title, titles::edition),
    row("255", 0.008, Once, map, notes::scale),
    row("260", 0.777, Few(1.03), old_rules, titles::imprint),
    row("264", 0.055, Few(1.4), new_rules, titles::production),
    row("300", 0.805, Once, title, titles::extent),
    row("310", 0.036, Once, serial, titles::frequency),
    row("336", 0.093, Few(1.04), new_rules, titles::rda_type),
    row("337", 0.093, Few(1.03), new_rules, titles::rda_type),
    row("338", 0.092, Few(1.02), new_rules, titles::rda_type),
    row("362", 0.051, Few(1.06), serial, titles::dates_of_issue),
    row("400", 0.024, Few(1.4), |c| c.kind == PersonName, subjects::authority),
    row("440", 0.118, Few(1.02), old_rules, titles::series_statement),
    row("410", 0.010, Few(1.4), |c| c.kind == BodyName, subjects::authority),
    row("450", 0.020, Few(1.5), |c| c.kind == Topic, subjects::authority),
    row("451", 0.005, Few(1.2), |c| c.kind == PlaceName, subjects::authority),
    row("490", 0.108, Few(1.04), title, titles::series_statement),
    row("500", 0.486, Few(1.88), title, notes::general),
    row("502", 0.015, Once, text, notes::thesis),
    row("504", 0.221, Few(1.01), text, notes::bibliography),
    row("505", 0.129, Few(1.27), title, notes::contents),
    row("506", 0.020, Once, title, notes::restriction),
    row("510", 0.035, Few(1.57), title, notes::cited_in),
    row("511", 0.057, Few(1.03), sound, notes::performers),
    row("518", 0.025, Few(1.1), sound, notes::recorded),
    row("520", 0.080, Few(1.05), title, notes::summary),
    row("530", 0.050, Once, title, notes::other),
    row("533", 0.045, Once, title, notes::reproduction),
    row("538", 0.038, Few(1.15), title, notes::system_details),
    row("540", 0.060, Once, title, notes::other),
    row("541", 0.03, Once, title, notes::acquired),
    row("545", 0.050, Once, title, notes::biography),
    row("546", 0.048, Few(1.04), title, notes::language),
    row("550", 0.015, Few(1.4), |c| c.kind == Topic, subjects::authority),
    row("561", 0.045, Once, title, notes::biography),
    row("583", 0.06, Once, campus, holdings::kept),
    row("588", 0.03, Once, title, notes::other),
    row("590", 0.10, Few(1.4), title, notes::local),
    row("596", 0.351, Once, counted, holdings::holders),
    row("600", 0.128, Few(1.51), title, subjects::person),
    row("610", 0.048, Few(1.32), title, subjects::body),
    row("650", 0.575, Few(2.5), title, subjects::topical),
    row("651", 0.169, Few(1.51), title, subjects::geographic),
    row("653", 0.08, Few(1.6), title, subjects::keyword),
    row("655", 0.111, Few(1.98), title, subjects::form),
    row("670", 0.025, Few(1.3), authority, subjects::found_in),
    row("700", 0.337, Few(2.38), title, names::other_person),
    row("710", 0.164, Few(1.47), title, names::other_body),
    row("740", 0.036, Few(1.67), title, titles::related_title),
    row("752", 0.020, Few(1.2), title, titles::place_of_printing),
    row("773", 0.04, Once, title, titles::relation),
    row("776", 0.032, Few(1.18), title, titles::relation),
    row("780", 0.020, Few(1.3), serial, titles::relation),
    row("785", 0.02, Few(1.3), serial, titles::relation),
    row("787", 0.020, Few(1.3), title, titles::relation),
    row("800", 0.020, Few(1.2), title, titles::series_of_person),
    row("810", 0.020, Few(1.2), title, names::other_body),
    row("830", 0.100, Few(1.09), title, titles::series_heading),
    row("852", 0.174, Few(1.42), stands, holdings::location),
    row("856", 0.132, Few(1.22), title, holdings::address),
    row("866", 0.037, Few(1.83), holding, holdings::volumes_held),
    row("876", 0.057, Many(4.2), holdings_library, holdings::copy_of_holding),
    row("880", 1.0, Once, linked, linked_fields),
    row("906", 0.035, Once, title, holdings::workflow),
    row("907", 0.090, Few(1.05), millennium, holdings::record_number),
    row("910", 0.05, Once, title, holdings::batch),
    row("911", 0.034, Once, title, holdings::local_number),
    row("915", 0.060, Few(1.5), campus, notes::local),
    row("940", 0.049, Many(2.8), items, holdings::item),
    row("942", 0.030, Once, items, holdings::local_kind),
    row("945", 0.050, Few(1.5), millennium, holdings::copy_with_counters),
    row("948", 0.036, Few(1.09), campus, holdings::batch),
    row("949", 0.193, Many(3.4), with_949, holdings::copy_with_history),
    row("970", 0.180, Few(1.05), shared, holdings::repository),
    row("971", 0.150, Once, shared, holdings::repository),
    row("972", 0.150, Few(1.3), shared, holdings::repository),
    row("973", 0.150, Few(1.3), shared, holdings::repository),
    row("974", 0.120, Few(1.4), shared, holdings::repository),
    row("994", 0.037, Once, campus, holdings::transaction),
    row("998", 0.045, Few(1.23), millennium, holdings::fixed_fields),
    row("999", 0.284, Few(2.7), stacks, holdings::copy),
];

fn national_or_old(c: Case) -> bool {
    national(c) || (old_rules(c) && book(c))
}
fn national_or_authority(c: Case) -> bool {
    national(c) || authority(c)
}
fn with_949(c: Case) -> bool {
    campus(c) || (millennium(c) && title(c))
}
fn linked_fields(m: &mut Maker) {
    m.finish_linked();
}
/// Whether a record is linked is settled in its plan.
fn linked(_: Case) -> bool {
    true
}
