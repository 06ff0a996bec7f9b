//! Numbers that others gave to the work, with their check digits: 010 to 037.

use super::{
    maker::Maker,
    plan::{Kind, Library},
};
use crate::record::dataset::{random::mix, words::Language};

pub(super) fn lccn(m: &mut Maker) {
    let year = u64::from(m.plan.year % 100);
    m.ind("  ").sub_or(0.04, 'z', 'a');
    match m.plan.year {
        2001.. => m.say("  ").year().digits(6),
        _ => m.say("   ").padded(year, 2).digits(6),
    };
    if m.chance(0.5) {
        m.any(" | | /AC/r952|//r84| /MN");
    }
}

pub(super) fn national_number(m: &mut Maker) {
    let year = u64::from(m.plan.year % 100);
    m.ind("  ").sub('a').any("GB|C||N").padded(year, 2).say("-").digits(4);
    if m.chance(0.55) {
        m.sub('2').any("dnb|bnb|can|nznb");
    }
}

pub(super) fn agency_number(m: &mut Maker) {
    m.ind("7 ").sub('a').digits(9).sub('2').any("Uk|DNLM|GyFmDB");
}

pub(super) fn merged(m: &mut Maker) {
    m.ind("  ").sub('a').digits(8);
    while m.chance(0.45) {
        m.sub('a').digits(8);
    }
}

/// The check digit of a number of nine digits as ISBN-10.
fn check_10(number: u32) -> char {
    let mut sum = 0;
    let mut rest = number;
    for weight in 2..=10 {
        sum += rest % 10 * weight;
        rest /= 10;
    }
    char::from_digit((11 - sum % 11) % 11, 10).unwrap_or('X')
}

/// The check digit of `978` and a number of nine digits as ISBN-13.
fn check_13(number: u32) -> char {
    // 9 + 3 * 7 + 8 from the prefix; then weights 3, 1, 3 ... from the left, nine of them.
    let (mut sum, mut rest) = (38, number);
    for i in 0..9 {
        sum += rest % 10 * if i % 2 == 0 { 3 } else { 1 };
        rest /= 10;
    }
    char::from_digit((10 - sum % 10) % 10, 10).unwrap_or('0')
}

/// 020: mostly the same book's number in its old and its new form, and those of its other bindings.
pub(super) fn isbn(m: &mut Maker) {
    // Some groups of the number's first digits: language areas and publishers.
    let publisher = mix(m.plan.work >> 60) % 4_000;
    let area = match m.plan.language {
        Language::English => 0,
        Language::French => 2,
        Language::German => 3,
        Language::Japanese => 4,
        Language::Russian => 5,
        Language::Chinese => 7,
        _ => 8,
    };
    // The number of a binding: from what is settled about the record, so that turns 0 and 1 agree.
    let binding = ((m.plan.work >> 16) + u64::from(m.turn.0 / 2) * 131) % 10_000;
    let number = (area * 100_000_000 + publisher * 10_000 + binding) as u32;
    m.ind("  ");
    if m.chance(0.055) {
        m.sub('c').say("$").range(3, 90).say(".").any("00|50|95");
        return;
    }
    m.sub_or(0.045, 'z', 'a');
    if m.turn.0 % 2 == 1 || (m.turn.1 == 1 && m.plan.year > 2006) {
        m.say("978").padded(number.into(), 9).say(check_13(number).encode_utf8(&mut [0; 4]));
    } else {
        m.padded(number.into(), 9).say(check_10(number).encode_utf8(&mut [0; 4]));
    }
    if m.chance(0.1) {
        m.sub('q').any("(pbk.)|(hardcover)|(paperback)|(alk. paper)|(electronic bk.)");
    } else if m.chance(0.45) {
        m.any(" (pbk.)| (alk. paper)| (hbk.)| (acid-free paper)| (pbk. : alk. paper)| (v. 1)");
    }
    if m.chance(0.22) {
        m.any(" :|").sub('c').any("$|\u{a3}|$|").range(3, 120).say(".");
        m.any("00|50|95");
    }
}

pub(super) fn issn(m: &mut Maker) {
    m.ind("  ").sub_or(0.08, 'y', 'a');
    let number = m.random.below(3_000_000);
    let (mut sum, mut rest) = (0, number);
    for weight in 2..=8 {
        sum += rest % 10 * weight;
        rest /= 10;
    }
    let check = char::from_digit((11 - sum % 11) % 11, 10).unwrap_or('X');
    let issn = format!("{:04}-{:03}{check}", number / 1000, number % 1000);
    m.say(&issn);
    if m.chance(0.15) {
        m.sub('l').say(&issn);
    }
    if m.chance(0.15) {
        m.sub('2').any("1|_g");
    }
}

pub(super) fn other_number(m: &mut Maker) {
    m.ind(if m.plan.case.kind == Kind::Music { "1 " } else { "3 " }).sub('a').digits(9).digits(4);
}

pub(super) fn label_number(m: &mut Maker) {
    m.ind(if m.plan.case.kind == Kind::Score { "22" } else { "02" }).sub('a');
    m.any("CD |ECM |HMC |BIS-|LP-|").digits(5).sub('b');
    m.label();
}

pub(super) fn system_number(m: &mut Maker) {
    let control = m.plan.control;
    m.ind("  ");
    let turn = m.turn.0;
    match turn {
        0 => {
            // 1 in 15 carries the number it had before; that of another system, in a few.
            m.sub_or(0.06, 'z', 'a');
            m.any("(OCoLC)|(OCoLC)ocm|(OCoLC-M)").digits(8);
        }
        1 => match m.plan.case.library {
            Library::Stacks => {
                m.sub('a').say("(Sirsi) a").num(control);
            }
            Library::Shared => {
                m.sub('a').say("(RLIN)MIUG").digits(7).say("-B");
            }
            _ => {
                m.sub('a').say("LIAS").num(control);
            }
        },
        2 if m.plan.case.library == Library::Shared => {
            m.sub('a').say("(CaOTULAS)159").digits(6);
        }
        _ if turn % 8 == 5 => {
            m.sub('9').digits(8);
        }
        _ => {
            m.sub('a').any("(CStRLIN)|(DE-599)|(Nz)|(NLNZils)|sdr-|(MdBJ)").digits(7);
        }
    }
    if m.chance(0.1) {
        m.sub('b').any("ocm|cat");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_are_those_printed_on_books() {
        // 0-306-40615-2, 0-8044-2957-X; 978-0-306-40615-7, 978-3-16-148410-0.
        assert_eq!((check_10(30_640_615), check_10(80_442_957)), ('2', 'X'));
        assert_eq!((check_13(30_640_615), check_13(316_148_410)), ('7', '0'));
    }
}
