//! Marks and what they mean stand on the same page: no mark without its footnote, no footnote without
//! a cell that bears its mark.

use super::*;

const MARKS: [char; 10] = ['*', '†', '‡', '~', '=', '?', '^', '§', '≠', '!'];

/// The marks at the end of a cell; the question mark of an interval that is not known is none.
fn borne(cell: &str) -> impl Iterator<Item = char> {
    let cell = cell.replace(number::UNKNOWN, "±");
    let ends = cell.trim_end_matches(" 1st").chars().rev();
    let marks: Vec<char> = ends.take_while(|c| MARKS.contains(c) || *c == ' ').collect();
    marks.into_iter().filter(|c| *c != ' ')
}

fn explained(page: &page::Page) {
    let mut unknown = false;
    for section in &page.sections {
        let cells: Vec<&String> = section.table.rows.iter().flatten().collect();
        let of = |mark: char| section.footnotes.iter().any(|f| f.starts_with(&format!("{mark} ")));
        for cell in &cells {
            for mark in borne(cell) {
                assert!(of(mark), "{}, {}: {cell:?} has no footnote", page.title, section.title);
            }
        }
        for footnote in &section.footnotes {
            let mut chars = footnote.chars();
            let (first, second) = (chars.next().unwrap_or(' '), chars.next());
            let shown = match MARKS.contains(&first) && second == Some(' ') {
                true => cells.iter().any(|cell| borne(cell).any(|mark| mark == first)),
                false => !footnote.starts_with("1st:") || section.table.shows(" 1st"),
            };
            assert!(shown, "{}, {}: nothing bears {footnote:?}", page.title, section.title);
        }
        unknown |= section.table.shows(number::UNKNOWN);
    }
    let told = page.notes.iter().any(|note| note.starts_with(number::UNKNOWN));
    assert_eq!(told, unknown, "{}: {:?}", page.title, page.notes);
}

#[test]
fn marks_and_their_meanings_stand_together() {
    for results in [formats(), objects(), samples::stores(), cache(), tenants(&["postgres"])] {
        for rounds in [1, 2, 4, usize::MAX] {
            for noisy in [false, true] {
                let mut results = results.clone();
                results.probes.iter_mut().for_each(|probe| probe.steal = noisy.then_some(0.2));
                for cell in &mut results.cells {
                    cell.rounds.truncate(rounds);
                }
                derive(&mut results);
                assert_eq!(results.noise().1, noisy);
                explained(&page(&results));
            }
        }
    }
}
