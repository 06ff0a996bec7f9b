//! Colours, dashes and shapes of series.
//!
//! The colours are those of Okabe and Ito ("Color Universal Design", 2008), told apart by people who
//! do not see red or green; each is darkened or lightened until it has a contrast of 3 to 1 with its
//! ground, as WCAG 2.2 asks of graphics (1.4.11). Names are always in the colour of text.

/// The ground and the text of a theme, and the inks of its series.
#[derive(Debug)]
pub(crate) struct Theme {
    pub ground: &'static str,
    /// Behind tables and charts.
    pub raised: &'static str,
    pub text: &'static str,
    /// Text that stands back.
    pub muted: &'static str,
    /// Lines between things.
    pub rule: &'static str,
    /// Links, and what has the keyboard's focus.
    pub accent: &'static str,
    /// The frame and the sign of a warning.
    pub warn: &'static str,
    /// Behind bars: what they could reach.
    pub track: &'static str,
    pub inks: [&'static str; 8],
}

/// Dark on light.
pub(crate) const LIGHT: Theme = Theme {
    ground: "#ffffff",
    raised: "#f6f7f8",
    text: "#1b1f23",
    muted: "#57606a",
    rule: "#d8dde2",
    accent: "#00619a",
    warn: "#9a5b00",
    track: "#eceff2",
    inks: ["#0072b2", "#d55e00", "#00875f", "#b5568c", "#b07800", "#2b8cc4", "#1b1f23", "#83888d"],
};

/// Light on dark.
pub(crate) const DARK: Theme = Theme {
    ground: "#14171a",
    raised: "#1c2024",
    text: "#e6e9ec",
    muted: "#a2abb4",
    rule: "#363d44",
    accent: "#6cc0f5",
    warn: "#e3a63b",
    track: "#262c32",
    inks: ["#3d9be0", "#f07f2e", "#1cc293", "#dd91ba", "#e6a91f", "#8fd0f7", "#e6e9ec", "#969da3"],
};

impl Theme {
    /// Every colour by its name.
    fn named(&self) -> Vec<(String, &'static str)> {
        let grounds = [
            ("ground", self.ground),
            ("raised", self.raised),
            ("text", self.text),
            ("muted", self.muted),
            ("rule", self.rule),
            ("accent", self.accent),
            ("warn", self.warn),
            ("track", self.track),
        ];
        let inks = self.inks.iter().enumerate().map(|(i, ink)| (format!("ink{i}"), *ink));
        grounds.into_iter().map(|(name, colour)| (name.to_owned(), colour)).chain(inks).collect()
    }

    /// As CSS properties.
    pub(crate) fn css(&self) -> String {
        self.named().iter().map(|(name, colour)| format!("--{name}:{colour};")).collect()
    }

    /// The style of charts in this theme alone, without properties: what draws SVG outside of
    /// browsers seldom knows them.
    pub(crate) fn style(&self) -> String {
        self.named().iter().fold(STYLE.to_owned(), |style, (name, colour)| {
            style.replace(&format!("var(--{name})"), colour)
        })
    }
}

/// What charts are drawn with, whatever the theme.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The place of a series among the others of its page, from which its looks follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tone(pub usize);

impl Tone {
    /// The class that gives it its colour.
    pub(crate) fn class(self) -> String {
        format!("t{}", self.0 % LIGHT.inks.len())
    }

    /// The dashes of its line; two series of one colour have different ones.
    pub(crate) fn dashes(self) -> &'static str {
        ["none", "6 3", "2 3", "8 3 2 3"][(self.0 + self.0 / LIGHT.inks.len()) % 4]
    }

    /// A shape of about 7 units about this point.
    pub(crate) fn shape(self, x: f64, y: f64) -> String {
        match self.0 % 5 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
            1 => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6.2\" height=\"6.2\"/>",
                x - 3.1,
                y - 3.1
            ),
            2 => format!("<path d=\"M{x:.1} {:.1}l3.9 6.8h-7.8z\"/>", y - 4.2),
            3 => format!("<path d=\"M{x:.1} {:.1}l4.2 4.2-4.2 4.2-4.2-4.2z\"/>", y - 4.2),
            _ => format!("<path d=\"M{x:.1} {:.1}l3.9-6.8h-7.8z\"/>", y + 4.2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let v = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn both_themes_can_be_read() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 0.01);
        for theme in [LIGHT, DARK] {
            for ground in [theme.ground, theme.raised] {
                for text in [theme.text, theme.muted, theme.accent, theme.warn] {
                    let found = contrast(text, ground);
                    assert!(found >= 4.5, "text {text} on {ground}: {found:.2}");
                }
            }
            for ground in [theme.ground, theme.raised, theme.track] {
                for ink in theme.inks {
                    let found = contrast(ink, ground);
                    assert!(found >= 3.0, "ink {ink} on {ground}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn no_two_of_forty_look_alike() {
        let mut looks: Vec<(String, &str, usize)> =
            (0..40).map(|i| (Tone(i).class(), Tone(i).dashes(), i % 5)).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 40);
    }
}
