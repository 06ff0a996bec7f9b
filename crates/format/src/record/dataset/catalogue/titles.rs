//! Titles, imprints, descriptions, series and related records: 130, 240 to 490, 740 to 830.

use super::{
    maker::{Maker, STREAM},
    names::COUNTRIES,
    plan::Kind,
};
use crate::record::dataset::{
    random::{Random, Ranks},
    words::Language,
};

/// Publishers and series are drawn from so many, a few of them often.
const HOUSES: Ranks = Ranks::new(11, 1050);
const SERIES: Ranks = Ranks::new(13, 1100);

/// What a thing of many is made from: the same for the same number.
pub(super) fn fixed(list: u64, language: Language, id: u32) -> Random {
    Random::new(STREAM + list, language as u64, u64::from(id))
}

pub(super) fn uniform_title(m: &mut Maker) {
    m.linked("10", |m| {
        if matches!(m.plan.case.kind, Kind::Music | Kind::Score) {
            m.sub('a').any("Sonatas,|Concertos,|Quartets,|Symphonies,|Songs.|Suites,");
            m.sub('m').any("piano,|violin, orchestra,|strings,|cello, piano,");
            m.sub('n').say("no. ").range(1, 32).say(", op. ").range(1, 130).say(",");
            m.sub('r').any("C|D|E♭|F|G|A|B♭").any(" major| minor");
        } else {
            m.sub('a').title(1, 5).stop();
            if m.chance(0.65) {
                m.sub('l').any("English|German|French|Spanish").any("|.");
            }
        }
    });
}

pub(super) fn title_heading(m: &mut Maker) {
    m.linked("0 ", |m| {
        m.sub('a').title(1, 4).say(" (").place().say(")");
    });
}

const DESIGNATIONS: &str = "\
    [sound recording]|[electronic resource]|[microform]|[videorecording]|\
    [cartographic material]";

pub(super) fn title(m: &mut Maker) {
    let rest = m.chance(0.39);
    let says_who = m.chance(0.69);
    let medium = match m.plan.case.kind {
        Kind::Music | Kind::Talk => (!m.plan.case.new_rules()).then_some(0),
        Kind::Video => Some(3),
        Kind::Map => Some(4),
        _ => m.chance(0.06).then_some(1 + (m.plan.work % 2) as usize),
    };
    let article = m.plan.language == Language::English && m.chance(0.22);
    m.linked(if article { "14" } else { "10" }, |m| {
        m.sub('a');
        if article {
            m.say("The ").phrase(2, 7);
        } else {
            m.title(2, 8);
        }
        if m.chance(0.02) {
            m.sub('n').any("Part |Vol. |Bd. ").range(1, 12).say(",").sub('p').title(2, 4);
        }
        if let Some(medium) = medium {
            m.say(" ").sub('h').say(DESIGNATIONS.split('|').nth(medium).unwrap_or_default());
        }
        if rest {
            m.say(" :").sub('b').phrase(3, 12);
            if m.chance(0.15) {
                m.say(" = ").title(2, 6);
            }
        }
        if says_who {
            m.say(" /").sub('c');
            m.any("|||by |edited by |[by] ").by_author();
            if m.chance(0.3) {
                m.any(" and | & |, ").by();
            }
            if m.chance(0.22) {
                m.any(" ; edited by | ; with an introduction by | ; translated by | ; illustrated by ");
                m.by();
            }
        }
        m.stop();
    });
}

pub(super) fn other_title(m: &mut Maker) {
    m.linked("30", |m| {
        if m.chance(0.17) {
            m.sub('i')
                .any("Title on cover:|Added title page title:|At head of title:|Spine title:");
        }
        m.sub('a').title(2, 7);
        if m.chance(0.04) {
            m.sub('b').phrase(2, 6);
        }
    });
}

pub(super) fn related_title(m: &mut Maker) {
    m.ind("0 ").sub('a').title(2, 7).stop();
}

pub(super) fn edition(m: &mut Maker) {
    m.linked("  ", |m| {
        m.sub('a');
        match m.plan.language {
            Language::English => m.any("1st ed.|2nd ed.|1st ed.|Rev. ed.|3rd ed.|1st American ed.|[2d ed.].|New ed.|First edition.|1st Vintage Books ed.|2nd ed., rev. and enl."),
            Language::German | Language::Swedish => {
                m.range(1, 5).any(". Aufl.|., überarb. Aufl.|., durchgesehene Auflage.")
            }
            Language::French => {
                m.any("2e éd.|Nouv. éd.|1re éd.|3. éd., revue et augmentée.")
            }
            Language::Russian => m.either("Изд. ", "Izd. ").range(1, 4).stop(),
            Language::Greek => m.range(1, 4).either(". έκδ.", ". ekd."),
            Language::Chinese => m.either("第", "Di ").range(1, 4).either("版.", " ban."),
            Language::Japanese => m.either("第", "Dai ").range(1, 4).either("版.", "-han."),
            Language::Arabic => m.either("الطبعة ", "al-Ṭabʻah ").range(1, 4).stop(),
            Language::Hebrew => m.either("מהדורה ", "Mahadurah ").range(1, 4).stop(),
            _ => m.range(1, 4).any(". ed.|a ed."),
        };
    });
}

/// Where and by whom it was published: a house by number, so that the two go together.
fn house(m: &mut Maker) {
    let language = m.plan.language;
    let mut house = fixed(2, language, m.random.rank(&HOUSES));
    let (lexicon, native) = (language.lexicon(), m.native);
    let mut text = String::from("\u{1f}a");
    lexicon.place(&mut house, native, &mut text);
    if house.chance(0.12) {
        text.push_str(" ;\u{1f}a");
        lexicon.place(&mut house, native, &mut text);
    }
    text.push_str(" :\u{1f}b");
    lexicon.family(&mut house, native, &mut text);
    if house.chance(0.45) {
        text.push_str(" & ");
        lexicon.family(&mut house, native, &mut text);
    }
    if house.chance(0.7) {
        text.push(' ');
        lexicon.house(&mut house, native, &mut text);
    }
    m.say(&text);
}

pub(super) fn imprint(m: &mut Maker) {
    m.linked("  ", |m| {
        house(m);
        let year = m.plan.year;
        match m.random.below(100) {
            0..7 => m.stop(),
            7..20 => m.say(",").sub('c').say("[").num(year).any("]|?]"),
            20..60 if year > 1900 => m.say(",").sub('c').any("c|").num(year).stop(),
            _ => m.say(",").sub('c').num(year).any(".|.|-"),
        };
        if m.chance(0.028) {
            m.sub('e').say("(").place().say(" :").sub('f').title(1, 2).say(")");
        }
    });
}

pub(super) fn production(m: &mut Maker) {
    let year = m.plan.year;
    if m.turn.0 == 1 {
        m.ind(" 4").sub('c').any("©|℗").num(year);
        return;
    }
    m.linked(" 1", |m| {
        house(m);
        m.say(",").sub('c');
        if m.chance(0.5) {
            m.say("[").num(year).say("]");
        } else {
            m.num(year).stop();
        }
    });
}

pub(super) fn extent(m: &mut Maker) {
    m.ind("  ").sub('a');
    let new = m.plan.case.new_rules();
    match m.plan.case.kind {
        Kind::Serial => {
            m.any("v. |volumes |v. (loose-leaf) ");
            if m.chance(0.5) {
                m.say(":").sub('b').any("ill. |ill., maps |illustrations ");
            }
        }
        Kind::Music | Kind::Talk => {
            m.range(1, 3).any(" sound disc| audio disc| sound discs");
            if m.chance(0.6) {
                m.say(" (").range(20, 79).say(" min., ").range(1, 59).say(" sec.)");
            }
            m.say(" :").sub('b').any("digital, stereo. ;|digital ;|analog, 33 1/3 rpm, stereo. ;");
            m.sub('c').any("4 3/4 in.|12 in.");
            if m.chance(0.3) {
                m.any(" + | +").sub('e').say("1 booklet (").range(4, 40).say(" p.)");
            }
            return;
        }
        Kind::Score => {
            m.say("1 score (").range(4, 200).any(" p.) | pages) | p.) + 4 parts ");
        }
        Kind::Video => {
            m.say("1 ").any("videodisc|videocassette").say(" (").range(20, 180).say(" min.) :");
            m.sub('b').any("sd., col. ;|sound, color ;").sub('c').any("4 3/4 in.|1/2 in.");
            return;
        }
        Kind::Map => {
            m.say("1 map :").sub('b').any("col. ;|both sides, col. ;");
            m.sub('c').range(20, 90).say(" x ").range(20, 110).say(" cm.");
            return;
        }
        _ => {
            if m.chance(0.45) {
                m.any("xi|viii|xii|ix|xvi|x|xiv|vii|xxiii|2").say(", ");
            }
            m.range(24, 640).say(if new { " pages" } else { " p." });
            if m.chance(0.07) {
                m.say(", [").range(2, 48).say("] ").any("leaves of plates|p. of plates");
            }
            if m.chance(0.48) {
                m.say(" :").sub('b');
                if new {
                    m.any("illustrations |illustrations, maps |illustrations (some color) ");
                } else {
                    m.any(
                        "ill. |ill., maps |ill. |illus. |ports. |ill. (some col.) |maps |facsims. ",
                    );
                }
            } else {
                m.say(" ");
            }
        }
    }
    if m.chance(0.8) {
        m.say(";").sub('c').range(18, 31).any(" cm.| cm.| cm");
    }
    m.trim();
}

pub(super) fn frequency(m: &mut Maker) {
    m.ind("  ").sub('a').any("Annual|Quarterly|Monthly|Irregular|Semiannual|Bimonthly|Weekly");
    if m.chance(0.17) {
        m.any(", |").sub('b').year().say("-");
    }
}

/// 336, 337, 338: content, medium, carrier.
pub(super) fn rda_type(m: &mut Maker) {
    let kind = m.plan.case.kind;
    let at = match kind {
        Kind::Music => 1,
        Kind::Score => 2,
        Kind::Video => 3,
        Kind::Map => 4,
        Kind::Talk => 5,
        _ if m.plan.work.is_multiple_of(5) => 6,
        _ => 0,
    };
    let (names, codes, list) = match m.tag {
        "336" => (
            [
                "text",
                "performed music",
                "notated music",
                "two-dimensional moving image",
                "cartographic image",
                "spoken word",
                "text",
            ],
            ["txt", "prm", "ntm", "tdi", "cri", "spw", "txt"],
            "rdacontent",
        ),
        "337" => (
            ["unmediated", "audio", "unmediated", "video", "unmediated", "audio", "computer"],
            ["n", "s", "n", "v", "n", "s", "c"],
            "rdamedia",
        ),
        _ => (
            [
                "volume",
                "audio disc",
                "volume",
                "videodisc",
                "sheet",
                "audio disc",
                "online resource",
            ],
            ["nc", "sd", "nc", "vd", "nb", "sd", "cr"],
            "rdacarrier",
        ),
    };
    m.ind("  ").sub('a').say(names[at]);
    if m.chance(0.88) {
        m.sub('b').say(codes[at]);
    }
    m.sub('2').say(list);
}

pub(super) fn dates_of_issue(m: &mut Maker) {
    m.linked("0 ", |m| {
        let year = m.plan.year;
        m.sub('a').any("Vol. 1, no. 1 (|1. Jahrg. (|v. 1- (|No. 1 (");
        m.any("|Jan. |spring |1st quarter ").num(year).say(")-");
    });
}

/// A series, by number.
fn series(m: &mut Maker, end: &str) {
    let language = m.plan.language;
    let mut series = fixed(3, language, m.random.rank(&SERIES));
    let (lexicon, native) = (language.lexicon(), m.native);
    let mut text = String::new();
    let words = series.between(2, 6);
    lexicon.phrase(&mut series, words, true, native, &mut text);
    m.sub('a').say(&text);
    if m.chance(0.53) {
        m.say(" ;").sub('v').any("|v. |no. |Bd. ||t. ").range(1, 300);
    }
    m.say(end);
}

pub(super) fn series_statement(m: &mut Maker) {
    m.linked(if m.plan.work.is_multiple_of(2) { "1 " } else { "0 " }, |m| {
        series(m, "");
        if m.chance(0.1) {
            m.sub('x').digits(4).say("-").digits(4);
        }
    });
}

pub(super) fn series_heading(m: &mut Maker) {
    m.linked(" 0", |m| {
        series(m, ".");
        if m.chance(0.06) {
            m.sub('p').title(2, 4).stop();
        }
    });
}

pub(super) fn series_of_person(m: &mut Maker) {
    m.ind("1 ")
        .person()
        .sub('t')
        .title(2, 5)
        .say(" ;")
        .sub('v')
        .any("v. |no. |Bd. ")
        .range(1, 60)
        .stop();
}

pub(super) fn place_of_printing(m: &mut Maker) {
    m.ind("  ").sub('a').any(COUNTRIES).sub('d').place().stop();
}

/// 773 to 787: a record that has to do with this one.
pub(super) fn relation(m: &mut Maker) {
    m.ind("08");
    match m.tag {
        "776" => m.sub('i').any("Online version:|Print version:|Also issued online:"),
        "773" => m.sub('i').say("In:"),
        _ => m,
    };
    if m.chance(0.25) {
        m.person().stop();
    }
    m.sub('t').title(2, 7).stop();
    if m.chance(0.3) {
        m.sub('d');
        m.place().say(", ").year();
    }
    if m.chance(0.4) {
        m.sub('x').digits(4).say("-").digits(4);
    }
    m.sub('w').any("(OCoLC)|(DLC)   |(OCoLC)").digits(8);
}
