//! What is told about a record in words: 500 to 590.

use super::{maker::Maker, plan::Kind};
use crate::record::dataset::random::Ranks;

/// How long a long text is: mostly short, some very long.
const LENGTH: Ranks = Ranks::new(8, 755);

pub(super) fn general(m: &mut Maker) {
    m.ind("  ").sub('a');
    match m.random.below(34) {
        0 | 1 => m.say("Includes index."),
        2 => m.say("Title from cover."),
        3 => m.any("Cover title.|Caption title.|Title from container.|Includes indexes."),
        4 => m.say("Translation of: ").title(2, 7).stop(),
        5 | 6 => m.say("\"").english(4, 14).say(".\""),
        7 => m
            .say("Originally published: ")
            .place()
            .say(" : ")
            .title(1, 2)
            .say(", ")
            .range(1890, 1999)
            .stop(),
        8 => m.say("Reprint. Originally published: ").place().say(", ").range(1840, 1980).stop(),
        9 => m
            .say("Based on the author's thesis (")
            .english(1, 3)
            .say(", ")
            .range(1960, 2008)
            .say(")."),
        10 => m.say("At head of title: ").title(2, 8).stop(),
        11 => m.say("Errata slip inserted."),
        12 => {
            m.say("\"").english(3, 9).say("\"--").any("Cover.|P. [4] of cover.|T.p. verso.|Pref.")
        }
        13 => m.say("Series statement from jacket."),
        14 => m.say("Issued in portfolio with ").english(3, 10).stop(),
        15 => m.say("Edition limited to ").range(50, 2000).say(" copies."),
        16 => m.say("Description based on print version record."),
        17 => m.say("Map on lining papers."),
        18 => m.say("Duration: ").range(10, 79).say(":").range(10, 59).stop(),
        19 => m
            .say("Program notes by ")
            .by()
            .say(" in English, French, and German (")
            .range(4, 40)
            .say(" p.) in container."),
        20 => m.say("\"A ").phrase(2, 6).say(" book.\""),
        21 => m
            .say("Papers presented at ")
            .english(3, 8)
            .say(", held ")
            .range(1960, 2010)
            .say(", ")
            .place()
            .stop(),
        22 => m.say("Title varies slightly."),
        23 => {
            m.say("Text in ").any("English and French|English and German|Latin and English").stop()
        }
        24 => m.say("Publisher's no.: ").range(1000, 99999).stop(),
        _ => m.english(7, 26).stop(),
    };
    if m.chance(0.05) {
        m.sub('5').any("CSt|PSt|NcD");
    }
    if m.chance(0.12) {
        m.say(" ").any("Cf. |See also |Compiled by ").by().stop();
    }
}

pub(super) fn thesis(m: &mut Maker) {
    m.ind("  ").sub('a').any("Thesis (Ph. D.)--|Thesis (M.A.)--|Thesis (doctoral)--");
    m.title(1, 3).say(", ").year().stop();
}

pub(super) fn bibliography(m: &mut Maker) {
    m.ind("  ").sub('a');
    let from = m.random.between(90, 400);
    match m.random.below(10) {
        0 | 1 => m.say("Includes bibliographical references and index."),
        2 => m.say("Includes bibliographical references."),
        3 => m.say("Bibliography: p. ").num(from).say("-").num(from + from % 31 + 1).stop(),
        4 => m.any("Includes bibliographies.|Includes bibliographies and index.|Bibliography."),
        5 => m.say("Includes bibliographical references and indexes."),
        6 | 7 => m
            .say("Includes bibliographical references (p. [")
            .num(from)
            .say("]-")
            .num(from + from % 27 + 1)
            .say(") and index."),
        _ => m
            .say("Includes bibliographical references (p. ")
            .num(from)
            .say("-")
            .num(from + from % 23 + 1)
            .say(")."),
    };
}

pub(super) fn contents(m: &mut Maker) {
    let parts = 3 + m.random.rank(&LENGTH) / 3;
    let music = matches!(m.plan.case.kind, Kind::Music | Kind::Score);
    let enhanced = m.chance(0.06);
    m.linked(if enhanced { "00" } else { "0 " }, |m| {
        if !enhanced {
            m.sub('a');
        }
        for part in 0..parts {
            if part > 0 {
                m.say(" -- ");
            }
            if enhanced {
                m.sub('t').title(2, 7);
                if m.chance(0.3) {
                    m.say(" /").sub('r').by();
                }
                if m.chance(0.4) {
                    m.sub('g').say("(").range(1, 12).say(":").range(10, 59).say(")");
                }
                continue;
            }
            if parts < 9 && !music && m.chance(0.2) {
                m.any("v. |Vol. |pt. |Bd. ").num(part + 1).say(". ");
            }
            m.title(2, if music { 5 } else { 9 });
            if m.chance(if music { 0.35 } else { 0.2 }) {
                m.say(" / ").by();
            }
        }
        m.stop();
    });
}

pub(super) fn restriction(m: &mut Maker) {
    m.ind("  ").sub('a').any("Access limited to authorized users.|Restricted to subscribers.|License restrictions may limit access.");
}

pub(super) fn cited_in(m: &mut Maker) {
    m.ind("4 ")
        .sub('a')
        .any("STC (2nd ed.)|Wing (2nd ed.)|Sabin|ESTC|Bagnall|Evans|Goldsmiths'-Kress library");
    if m.chance(0.3) {
        m.say(", ").title(2, 4);
    }
    m.any(",|, no.").sub('c').range(100, 49_999);
    if m.chance(0.14) {
        m.sub('x').digits(4).say("-").digits(4);
    }
}

pub(super) fn performers(m: &mut Maker) {
    m.ind("0 ").sub('a');
    let players = m.random.between(1, 5);
    for player in 0..players {
        if player > 0 {
            m.say(" ; ");
        }
        m.by().say(", ").any("piano|violin|vocals|guitar|soprano|double bass|drums|conductor|cello|flute|organ|tenor");
    }
    if m.chance(0.3) {
        m.say(" ; ").english(2, 4).say(" Orchestra");
    }
    m.stop();
}

pub(super) fn recorded(m: &mut Maker) {
    m.ind("  ").sub('a').say("Recorded ").any("Jan. |May |Oct. |live ").range(1, 28).say(", ");
    m.year().say(", ").english(2, 4).say(", ").place().stop();
}

pub(super) fn summary(m: &mut Maker) {
    m.ind("  ").sub('a');
    if m.chance(0.15) {
        m.say("Summary: ");
    }
    let sentences = 1 + m.random.rank(&LENGTH) / 5;
    for sentence in 0..sentences {
        if sentence > 0 {
            m.say(" ");
        }
        m.english(8, 26);
        if m.chance(0.3) {
            m.say(", ").phrase(3, 9);
        }
        m.stop();
    }
    if m.chance(0.04) {
        m.say("--").sub('c').any("Publisher.|Container.");
    }
}

pub(super) fn reproduction(m: &mut Maker) {
    m.ind("  ").sub('a').any("Microfilm.|Photocopy.|Electronic reproduction.").sub('b');
    m.place().say(" :").sub('c').english(1, 2).say(",").sub('d').range(1965, 2012).stop();
    m.sub('e').range(1, 4).say(" microfilm reels ; 35 mm.");
}

pub(super) fn system_details(m: &mut Maker) {
    m.ind("  ").sub('a');
    match m.random.below(5) {
        0 | 1 => m.any("Mode of access: Internet.|Mode of access: World Wide Web."),
        2 => m.say("System requirements: ").english(3, 12).stop(),
        3 => m
            .say("DVD; region 1; NTSC; widescreen (16:9) presentation; Dolby Digital 5.")
            .range(0, 1)
            .stop(),
        _ => m.say("System requirements for accompanying disc: ").english(8, 22).stop(),
    };
}

pub(super) fn language(m: &mut Maker) {
    m.ind("  ").sub('a');
    m.any("Text in |In |Sung in |Parallel text in ");
    m.any("English|French|Latin|German").any(" and |, with summaries in |; commentary in ");
    m.any("Spanish.|German.|English.|Russian.");
    if m.chance(0.1) {
        m.say(" ").sub('b').say("Staff notation.");
    }
}

pub(super) fn acquired(m: &mut Maker) {
    m.ind("1 ")
        .sub('3')
        .range(1, 4)
        .say(" c.:")
        .sub('c')
        .any("Gift|Purchase|Exchange")
        .sub('a')
        .by()
        .say(";");
    m.sub('d').range(1920, 2015).say(".").sub('5').any("CSt|PSt|NcD");
}

pub(super) fn biography(m: &mut Maker) {
    m.ind("0 ")
        .sub('a')
        .by()
        .say(" ")
        .phrase_in(crate::record::dataset::words::Language::English, 15, 75, false)
        .stop();
}

pub(super) fn other(m: &mut Maker) {
    m.ind("  ").sub('a').english(6, 34).stop();
}

pub(super) fn local(m: &mut Maker) {
    m.ind("  ").sub('a').any("Library's copy |Stanford copy |Copy 2 |RBC: ");
    m.any("has bookplate of |inscribed by |gift of |from the library of ")
        .by()
        .say("; ")
        .english(4, 14)
        .stop();
}

/// 255 of a map.
pub(super) fn scale(m: &mut Maker) {
    m.ind("  ").sub('a').say("Scale 1:").range(5, 500).say(",000");
    if m.chance(0.4) {
        m.say(" ;").sub('b').any("transverse Mercator proj.|Lambert conformal conic proj.");
        m.sub('c')
            .say("(W ")
            .range(60, 179)
            .say("°")
            .range(10, 59)
            .say("ʹ--W ")
            .range(60, 179)
            .say("°")
            .range(10, 59)
            .say("ʹ).");
    } else {
        m.stop();
    }
}
