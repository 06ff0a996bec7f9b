//! Words that several pages share.

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_list_reads_as_one() {
        let of = super::list;
        assert_eq!(
            (of(&[]), of(&["a"]), of(&["a", "b"])),
            ("".into(), "a".into(), "a and b".into())
        );
        assert_eq!(of(&["a", "b", "c"]), "a, b and c");
    }
}
