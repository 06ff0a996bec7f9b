//! Cyrillic and Greek in Latin letters, as libraries write them.
//!
//! Source: ALA-LC Romanization Tables (Library of Congress): Russian, Greek (modern).

use super::capitalize;

/// Small letters; capitals follow from them.
const LETTERS: &[(char, &str)] = &[
    ('а', "a"),
    ('б', "b"),
    ('в', "v"),
    ('г', "g"),
    ('д', "d"),
    ('е', "e"),
    ('ё', "ë"),
    ('ж', "zh"),
    ('з', "z"),
    ('и', "i"),
    ('й', "ĭ"),
    ('к', "k"),
    ('л', "l"),
    ('м', "m"),
    ('н', "n"),
    ('о', "o"),
    ('п', "p"),
    ('р', "r"),
    ('с', "s"),
    ('т', "t"),
    ('у', "u"),
    ('ф', "f"),
    ('х', "kh"),
    ('ц', "t\u{fe20}s\u{fe21}"),
    ('ч', "ch"),
    ('ш', "sh"),
    ('щ', "shch"),
    ('ъ', "ʺ"),
    ('ы', "y"),
    ('ь', "ʹ"),
    ('э', "ė"),
    ('ю', "i\u{fe20}u\u{fe21}"),
    ('я', "i\u{fe20}a\u{fe21}"),
    ('α', "a"),
    ('ά', "a"),
    ('β', "v"),
    ('γ', "g"),
    ('δ', "d"),
    ('ε', "e"),
    ('έ', "e"),
    ('ζ', "z"),
    ('η', "ē"),
    ('ή', "ē"),
    ('θ', "th"),
    ('ι', "i"),
    ('ί', "i"),
    ('κ', "k"),
    ('λ', "l"),
    ('μ', "m"),
    ('ν', "n"),
    ('ξ', "x"),
    ('ο', "o"),
    ('ό', "o"),
    ('π', "p"),
    ('ρ', "r"),
    ('σ', "s"),
    ('ς', "s"),
    ('τ', "t"),
    ('υ', "y"),
    ('ύ', "y"),
    ('φ', "ph"),
    ('χ', "ch"),
    ('ψ', "ps"),
    ('ω', "ō"),
    ('ώ', "ō"),
];

/// The text with Cyrillic and Greek letters written in Latin ones; others as they are.
pub(super) fn romanized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut lower = c.to_lowercase();
        let small = lower.next().unwrap_or(c);
        match LETTERS.iter().find(|(letter, _)| *letter == small) {
            Some((_, latin)) => {
                let start = out.len();
                out.push_str(latin);
                if c != small {
                    capitalize(&mut out, start);
                }
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::romanized;

    #[test]
    fn as_libraries_write_it() {
        assert_eq!(romanized("Чехов"), "Chekhov");
        assert_eq!(romanized("Лекции"), "Lekt\u{fe20}s\u{fe21}ii");
        assert_eq!(romanized("Юрий"), "I\u{fe20}u\u{fe21}riĭ");
        assert_eq!(romanized("Αθήνα"), "Athēna");
        assert_eq!(romanized("Zürich"), "Zürich");
    }
}
