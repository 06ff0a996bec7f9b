//! Words that several pages share.

use std::borrow::Borrow;

use super::number::whole;
use steelyard_results::Dataset;

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[impl Borrow<str>]) -> String {
    match names {
        [] => String::new(),
        [one] => one.borrow().to_owned(),
        [rest @ .., last] => format!("{} and {}", rest.join(", "), last.borrow()),
    }
}

/// A moment as people write it: `2026-01-02 03:04 UTC` of `2026-01-02T03:04:05Z`. What is none is
/// left as it is.
pub(super) fn moment(rfc3339: &str) -> String {
    match (rfc3339.strip_suffix('Z').and_then(|t| t.split_once('T')), rfc3339.is_ascii()) {
        (Some((day, time)), true) if time.len() >= 5 => format!("{day} {} UTC", &time[..5]),
        _ => rfc3339.to_owned(),
    }
}

/// `18,881 MARC records`, and of how many where that is more.
pub(super) fn records(data: &Dataset) -> String {
    match data.of > data.records {
        true => format!("{} of {} {}", whole(data.records), whole(data.of), data.kind),
        false if data.records == 1 => format!("1 {}", one_of(&data.kind)),
        false => format!("{} {}", whole(data.records), data.kind),
    }
}

/// What many of are called so: `query` of `queries`.
pub(super) fn one_of(many: &str) -> String {
    let ends = [("ies", "y"), ("xes", "x"), ("s", "")];
    let one = |(many_end, end)| Some(format!("{}{end}", many.strip_suffix(many_end)?));
    ends.into_iter().find_map(one).unwrap_or_else(|| many.to_owned())
}

/// What points at [`records`].
pub(super) fn these(data: &Dataset) -> &'static str {
    if data.records == 1 { "this" } else { "these" }
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_are_short() {
        let of = super::moment;
        assert_eq!(of("2026-01-02T03:04:05Z"), "2026-01-02 03:04 UTC");
        for odd in ["", "yesterday", "TZ", "T1234é7Z", "2026-01-02T03:04:05+01:00"] {
            assert_eq!(of(odd), odd);
        }
    }

    #[test]
    fn many_have_a_name_for_one() {
        for (many, one) in [("queries", "query"), ("indexes", "index"), ("records", "record")] {
            assert_eq!(super::one_of(many), one);
        }
    }

    #[test]
    fn a_list_reads_as_one() {
        let of = |names: &[&str]| super::list(names);
        assert_eq!(
            (of(&[]), of(&["a"]), of(&["a", "b"])),
            ("".into(), "a".into(), "a and b".into())
        );
        assert_eq!(of(&["a", "b", "c"]), "a, b and c");
    }
}
