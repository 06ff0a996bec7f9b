//! Names, titles, imprints and descriptions: 100 to 490, 700 to 830.

use super::{
    maker::{Maker, STREAM},
    plan::Kind,
};
use crate::record::dataset::{
    random::{Random, Ranks},
    words::Language,
};

/// Publishers, series and bodies are drawn from so many, a few of them often.
const HOUSES: Ranks = Ranks::new(11, 1050);
const SERIES: Ranks = Ranks::new(13, 1100);
const BODIES: Ranks = Ranks::new(13, 1100);

/// What a thing of many is made from: the same for the same number.
fn fixed(list: u64, language: Language, id: u32) -> Random {
    Random::new(STREAM + list, language as u64, u64::from(id))
}

pub(super) fn main_person(m: &mut Maker) {
    let identity = m.chance(0.065);
    m.linked("1 ", |m| {
        m.person();
        if identity {
            m.sub('0').say("(DE-588)11").digits(7);
        } else if m.plan.case.new_rules && m.chance(0.5) {
            m.sub('e').say("author.");
        }
    });
}

pub(super) fn other_person(m: &mut Maker) {
    let analytic = m.chance(0.1);
    m.linked(if analytic { "12" } else { "1 " }, |m| {
        m.person();
        if analytic {
            m.sub('t').title(2, 6).say(".");
        } else if m.chance(0.19) {
            m.sub('e').any("ed.|editor.|joint author.|performer.|tr.|prf");
        } else if m.chance(0.1) {
            m.sub('4').any("prf|aut|edt|itr");
        }
        if m.chance(0.05) {
            m.sub('0').say("(DE-588)1").digits(8);
        }
    });
}

/// A body that writes or publishes, by number.
fn body(m: &mut Maker) {
    let language = m.plan.language;
    let mut body = fixed(1, language, m.random.rank(&BODIES));
    let native = m.native;
    let lexicon = language.lexicon();
    let mut text = String::new();
    m.sub('a');
    if language == Language::English || body.chance(0.25) {
        let english = Language::English.lexicon();
        match body.below(6) {
            0 | 1 => {
                text.push_str(body.choose(COUNTRIES));
                text.push_str(".\u{1f}b");
                text.push_str(body.choose("Department of |Office of |Congress. House. Committee on |Bureau of |Division of |Ministry of |National Institute of "));
                let words = body.between(1, 3);
                english.phrase(&mut body, words, true, false, &mut text);
            }
            2 => {
                text.push_str("University of ");
                english.place(&mut body, false, &mut text);
            }
            3 => {
                english.place(&mut body, false, &mut text);
                text.push_str(body.choose(
                    " Symphony Orchestra| Museum of Art| Philharmonic| Historical Society",
                ));
            }
            4 => {
                text.push_str(body.choose("International |National |American |Royal |"));
                let words = body.between(2, 4);
                english.phrase(&mut body, words, true, false, &mut text);
                text.push_str(body.choose(" Society| Association| Institute| Conference| Council"));
            }
            _ => {
                english.family(&mut body, false, &mut text);
                text.push_str(body.choose(" (Firm)| Foundation| Quartet| & Co.| (Musical group)"));
            }
        }
    } else {
        let words = body.between(2, 5);
        lexicon.phrase(&mut body, words, true, native, &mut text);
        text.push_str(" (");
        lexicon.place(&mut body, native, &mut text);
        text.push(')');
    }
    m.say(&text).say(".");
}

pub(super) fn main_body(m: &mut Maker) {
    m.linked(if m.plan.number % 3 == 0 { "1 " } else { "2 " }, body);
}

pub(super) fn other_body(m: &mut Maker) {
    m.linked("2 ", |m| {
        body(m);
        if m.chance(0.12) {
            m.sub('e').any("performer.|issuing body.|publisher.");
        } else if m.chance(0.05) {
            m.sub('0').say("(DE-588)").digits(7).say("-").digits(1);
        }
    });
}

pub(super) fn meeting(m: &mut Maker) {
    m.ind("2 ").sub('a').any("International Conference on |Symposium on |Congress of ");
    m.english(2, 5).sub('n').say("(").range(1, 30).any("th|nd").say(" :").sub('d');
    let year = m.plan.year;
    m.num(year).say(" :").sub('c');
    m.place().say(")");
}

pub(super) fn uniform_title(m: &mut Maker) {
    m.linked("10", |m| {
        if matches!(m.plan.case.kind, Kind::Music | Kind::Score) {
            m.sub('a').any("Sonatas,|Concertos,|Quartets,|Symphonies,|Songs.|Suites,");
            m.sub('m').any("piano,|violin, orchestra,|strings,|cello, piano,");
            m.sub('n').say("no. ").range(1, 32).say(", op. ").range(1, 130).say(",");
            m.sub('r').any("C|D|E♭|F|G|A|B♭").any(" major| minor");
        } else {
            m.sub('a').title(1, 5).say(".");
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
        Kind::Music | Kind::Talk => (!m.plan.case.new_rules).then_some(0),
        Kind::Video => Some(3),
        Kind::Map => Some(4),
        _ => m.chance(0.06).then_some(1 + (m.plan.number % 2) as usize),
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
            m.any("|||by |edited by |[by] ").by();
            if m.chance(0.3) {
                m.any(" and | & |, ").by();
            }
            if m.chance(0.22) {
                m.any(" ; edited by | ; with an introduction by | ; translated by | ; illustrated by ");
                m.by();
            }
        }
        m.say(".");
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
    m.ind("0 ").sub('a').title(2, 7).say(".");
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
            Language::Russian => {
                let native = m.native;
                m.say(if native { "Изд. " } else { "Izd. " }).range(1, 4).say(".")
            }
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
    text.push_str(house.pick(
        &["", "", "", " [etc.]", ", Mass.", ", N.J.", ", N.Y.", "", ""]
            [..if language == Language::English { 9 } else { 3 }],
    ));
    if house.chance(0.12) {
        text.push_str(" ;\u{1f}a");
        lexicon.place(&mut house, native, &mut text);
    }
    text.push_str(" :\u{1f}b");
    lexicon.family(&mut house, native, &mut text);
    if house.chance(0.25) {
        text.push_str(" and ");
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
        m.say(",");
        if m.chance(0.93) {
            if m.chance(0.15) {
                m.sub('c').say("[").num(year).any("]|?]");
            } else {
                m.sub('c').any("|c|").num(year).any(".|.|-");
            }
        }
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
        m.say(",").sub('c').any("[|").num(year).any("]|.");
    });
}

pub(super) fn extent(m: &mut Maker) {
    m.ind("  ").sub('a');
    let new = m.plan.case.new_rules;
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
        _ if m.plan.number % 5 == 0 => 6,
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
    m.linked(if m.plan.number % 2 == 0 { "1 " } else { "0 " }, |m| {
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
            m.sub('p').title(2, 4).say(".");
        }
    });
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
        m.person();
    }
    m.sub('t').title(2, 7).say(".");
    if m.chance(0.3) {
        m.sub('d');
        m.place().say(", ").year();
    }
    if m.chance(0.4) {
        m.sub('x').digits(4).say("-").digits(4);
    }
    m.sub('w').any("(OCoLC)|(DLC)   |(OCoLC)").digits(8);
}

/// A country or state: headings, bodies and subdivisions name them.
pub(super) const COUNTRIES: &str = "\
    United States|Great Britain|Germany|France|England|China|India|Italy|California|\
    New York (State)|Soviet Union|Canada|Japan|Spain|New Zealand|Mexico|Pennsylvania|\
    Russia|Ireland|Australia|Africa|Europe|Massachusetts|Texas|Illinois|Scotland|\
    Israel|Greece|Poland|Brazil|South Africa|Argentina|Sweden|Austria|Switzerland|\
    Netherlands|Latin America|Virginia|Michigan|Egypt|Turkey|Iran|Korea|\
    Québec (Province)|São Paulo (Brazil : State)|Nigeria|Peru|Rome";
