//! What a record is about: 600 to 659.
//!
//! Headings come from an authority list: the same number is always the same heading, wherever it is
//! drawn, and a few are drawn often.

use super::{
    maker::{Maker, STREAM},
    names::COUNTRIES,
    plan::Kind,
};
use crate::record::dataset::{
    random::{Random, Ranks},
    words::Language,
};

const TOPICS: Ranks = Ranks::new(17, 1100);
const PLACES: Ranks = Ranks::new(12, 950);
const FORMS: Ranks = Ranks::new(6, 900);

const ASPECTS: &str = "\
    History|Social conditions|Economic aspects|Politics and government|\
    Study and teaching|Social aspects|Philosophy|Criticism and interpretation|\
    Economic conditions|History and criticism|Research|Law and legislation|\
    Foreign relations|Management|Psychological aspects|Government policy|\
    Social life and customs|Religious aspects|Mathematical models|\
    Moral and ethical aspects";
const PUBLICATIONS: &str = "\
    Congresses.|Periodicals.|Biography.|Bibliography.|Handbooks, manuals, etc.|\
    Fiction.|Dictionaries.|Juvenile literature.|Exhibitions.|Early works to 1800.|\
    Catalogs.|Maps.|Case studies.|Scores and parts.|Statistics.|Sources.";
const PERIODS: &str = "\
    20th century|19th century|1945-|18th century|To 1500|1789-1799|\
    Civil War, 1861-1865|16th century";
const MUSIC: &str = "\
    Rock music|Popular music|Jazz|Concertos (Piano)|String quartets|Symphonies|\
    Songs, English|Piano music|Folk songs|Operas|Sonatas (Violin and piano)|\
    Blues (Music)";
const FORM_TERMS: &str = "\
    Electronic books|History|Feature films|Biographies|\
    Conference papers and proceedings|Fiction|Periodicals|Criticism, interpretation, etc|\
    Video recordings|Maps|Scores|Live sound recordings|Poetry|Drama|Novels|Catalogs";

/// Writes topic number `id`.
fn topic(m: &mut Maker, id: u32) {
    let mut topic = Random::new(STREAM + 5, 0, u64::from(id));
    let english = Language::English.lexicon();
    let mut text = String::new();
    let words = topic.pick(&[1, 1, 2, 2, 3]);
    english.phrase(&mut topic, words, true, false, &mut text);
    match topic.below(12) {
        0 => text.push_str(" (Philosophy)"),
        1 => text.push_str(", American"),
        2 => {
            text.push_str(" in ");
            english.any_word(&mut topic, false, &mut text);
        }
        3 => text.push_str(" systems"),
        4 => text.push_str(" and society"),
        _ => {}
    }
    m.sub('a').say(&text);
}

/// Where places lie that have a name of their own, and the language it is in.
const REGIONS: [(Language, &str); 8] = [
    (Language::English, " (N.Y.)"),
    (Language::English, " (England)"),
    (Language::English, " (Calif.)"),
    (Language::English, " (Pa.)"),
    (Language::English, " (N.Z.)"),
    (Language::English, " (Mass.)"),
    (Language::German, " (Germany)"),
    (Language::French, " (France)"),
];

/// Writes place number `id`, as a heading has it.
fn place(m: &mut Maker, id: u32) {
    if let Some(country) = COUNTRIES.split('|').nth(id as usize) {
        m.say(country);
        return;
    }
    let mut place = Random::new(STREAM + 6, 0, u64::from(id));
    let mut text = String::new();
    let (language, region) = place.pick(&REGIONS);
    language.lexicon().family(&mut place, false, &mut text);
    if place.chance(0.3) {
        text.push_str(place.choose(" Valley| County| River| Island"));
    }
    text.push_str(region);
    m.say(&text);
}

/// The subdivisions of a heading: aspect, place, period, form; each in its share of cases.
fn divide(m: &mut Maker, shares: [f64; 4]) {
    let [aspect, region, period, form] = shares;
    if m.chance(aspect) {
        m.sub('x').ranked(&FORMS, ASPECTS);
    }
    if m.chance(region) {
        let id = m.random.rank(&PLACES);
        m.sub('z');
        place(m, id);
    }
    if m.chance(period) {
        m.sub('y').any(PERIODS).stop();
        return;
    }
    if m.chance(form) {
        m.sub('v').ranked(&FORMS, PUBLICATIONS);
    } else {
        m.stop();
    }
}

pub(super) fn topical(m: &mut Maker) {
    let id = m.random.rank(&TOPICS);
    if matches!(m.plan.case.kind, Kind::Music | Kind::Score) && m.chance(0.8) {
        m.ind(" 0").sub('a').ranked(&FORMS, MUSIC).stop();
        return;
    }
    match m.random.below(100) {
        0..10 => {
            m.ind(" 7");
            topic(m, id);
            // The number belongs to the heading.
            m.say(".")
                .sub('2')
                .say("fast")
                .sub('0')
                .say("(OCoLC)fst")
                .padded(u64::from(id) * 17 + 800_000, 8);
        }
        10..14 => {
            m.ind(" 4");
            topic(m, id);
            m.sub('0').say("(DE-588)4").padded(u64::from(id), 6).say("-").digits(1);
        }
        _ => {
            m.ind(" 0");
            topic(m, id);
            divide(m, [0.31, 0.43, 0.07, 0.33]);
        }
    }
}

pub(super) fn geographic(m: &mut Maker) {
    m.ind(" 0").sub('a');
    let id = m.random.rank(&PLACES);
    place(m, id);
    if m.chance(0.12) {
        m.say(".")
            .sub('2')
            .say("fast")
            .sub('0')
            .say("(OCoLC)fst")
            .padded(u64::from(id) * 13 + 1_204_000, 8);
    } else {
        divide(m, [0.8, 0.13, 0.31, 0.38]);
    }
}

pub(super) fn person(m: &mut Maker) {
    m.ind("10").person();
    if m.chance(0.11) {
        m.stop().sub('t').title(1, 4).stop();
    } else {
        divide(m, [0.17, 0.0, 0.0, 0.28]);
    }
}

pub(super) fn body(m: &mut Maker) {
    m.ind("20").sub('a').any(COUNTRIES).stop();
    m.sub('b').any("Army|Congress|Supreme Court|Navy|Constitution|President").english(0, 2);
    divide(m, [0.4, 0.08, 0.04, 0.4]);
}

pub(super) fn form(m: &mut Maker) {
    let before = m.random.clone().bits() % 40_000;
    m.ind(" 7").sub('a').ranked(&FORMS, FORM_TERMS).stop();
    if m.chance(0.1) {
        m.sub('z').any(COUNTRIES).sub('y').any(PERIODS).stop();
    }
    match m.random.below(100) {
        0..32 => m.sub('2').say("fast").sub('0').say("(OCoLC)fst0").padded(1_411_600 + before, 7),
        32..86 => m.sub('2').any("lcgft|gsafd|local|rbgenr|aat"),
        _ => m,
    };
}

pub(super) fn keyword(m: &mut Maker) {
    m.ind("  ");
    loop {
        let id = m.random.rank(&TOPICS);
        topic(m, id);
        if !m.chance(0.5) {
            break;
        }
    }
}

/// 1XX of an authority record, and its 4XX and 5XX.
pub(super) fn authority(m: &mut Maker) {
    match m.tag.as_bytes()[1] {
        b'0' => {
            m.ind("1 ").person();
        }
        b'1' => {
            m.ind("2 ").sub('a').any(COUNTRIES).say(".").sub('b').english(1, 4);
        }
        b'5' if m.tag.ends_with('1') => {
            m.ind("  ").sub('a');
            let id = m.random.rank(&PLACES);
            place(m, id);
        }
        _ => {
            let id = m.random.rank(&TOPICS);
            m.ind("  ");
            topic(m, id);
        }
    }
    if m.tag.starts_with('5') && m.chance(0.4) {
        m.sub('w').any("g|h|b");
    }
}

/// 670: where the cataloguer found it.
pub(super) fn found_in(m: &mut Maker) {
    m.ind("  ").sub('a');
    m.any("Her |His |LC database|Wikipedia|OCLC, ")
        .title(2, 7)
        .say(", ")
        .range(1950, 2016)
        .say(":")
        .sub('b');
    m.any("t.p. (|CIP t.p. (|p. 4 of cover (|title page (").by().say(")");
    if m.chance(0.3) {
        m.any(" b. | born ").range(1850, 1985).say("; ").phrase(2, 8);
    }
}
