//! Finding the record elements in a stream of bytes.

use memchr::memmem::Finder;

use super::{
    NAMESPACE, local,
    token::{begins_name, in_name, is_space},
};
use crate::{Frame, Trouble, TroubleKind};

/// The longest record element that is waited for, in bytes, where nothing else is asked for.
pub const MAX_RECORD: usize = 32 << 20;

/// Finds record elements, block by block.
///
/// Every innermost `<record>` that has a leader or a field in it is a record, whatever is around it
/// and whatever the prefix. `<record>` elements of other kinds (those of OAI-PMH and SRU have the
/// same name) are looked into or stepped over. Comments, CDATA sections, processing instructions,
/// quotes and a document type are stepped over whatever is in them.
///
/// Only what is needed to find the ends of records is looked at: whether a record is well-formed,
/// [`read`](super::read) says. A record that does not end before the next one begins is
/// [`Frame::Bad`], and that next one is the next frame.
#[derive(Debug)]
pub struct Framer {
    /// What has not ended by so many bytes is given up: a file without an end does not fill the
    /// memory.
    limit: usize,
    /// Where the buffer of the next call begins, counted from the first call's.
    base: u64,
    /// From where to where it is known that no comment, CDATA section, instruction ends.
    free: [(u64, u64); 3],
    /// Elements open around records; none where that is not asked.
    depth: Option<u64>,
    /// A document type may only stand before the first element.
    begun: bool,
    /// There is text, but nothing yet that is MARCXML; none where that is not asked, or no longer.
    foreign: Option<bool>,
    /// Large, for what it is.
    name: Box<Finder<'static>>,
}

/// What hides tags: how it begins and ends.
const HIDES: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];

/// A step over a piece of markup.
enum Step {
    /// Behind it.
    To(usize),
    /// It does not end in this buffer.
    Open,
}

/// How the content of a record element ends.
enum Body {
    /// Before and behind its end tag.
    Ends(usize, usize),
    /// Another record begins.
    Nested(usize),
    Open,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// For a file from its beginning to its end.
    pub fn new() -> Self {
        Framer { depth: Some(0), ..Self::within() }
    }

    /// The same framer for a file that is meant to be MARCXML: one with something in it, but neither a collection nor a
    /// record, is [`Frame::Bad`].
    pub fn expecting_marcxml(mut self) -> Self {
        self.foreign = Some(false);
        self
    }

    /// For a part of a file, which need not begin or end where elements do.
    pub fn within() -> Self {
        Framer {
            limit: MAX_RECORD,
            base: 0,
            free: [(0, 0); 3],
            depth: None,
            begun: false,
            foreign: None,
            name: Box::new(Finder::new("record")),
        }
    }

    /// The same framer with another limit, in bytes.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// What comes next in `buf`, which begins where the last answer said to go on; `eof` says that
    /// nothing comes after it.
    pub fn next(&mut self, buf: &[u8], eof: bool) -> Frame {
        let frame = self.find(buf, eof);
        match frame {
            Frame::Record(_) | Frame::Bad(..) => self.foreign = None,
            _ => {}
        }
        self.base += match &frame {
            Frame::Record(range) | Frame::Bad(range, _) => range.end as u64,
            Frame::More(skip) => *skip as u64,
            Frame::End => 0,
        };
        frame
    }

    fn find(&mut self, buf: &[u8], eof: bool) -> Frame {
        let mut pos = 0;
        if let Some(foreign) = &mut self.foreign {
            *foreign |= !buf.trim_ascii().is_empty();
        }
        while let Some(n) = memchr::memchr(b'<', &buf[pos..]) {
            let at = pos + n;
            let last = eof || buf.len() - at > self.limit;
            match self.step(buf, at) {
                Step::Open if !last => return Frame::More(at),
                // Nothing ends it: then it is not what it seemed, and the next `<` may be.
                Step::Open => {
                    self.begun |= buf[at..].starts_with(b"<!DOCTYPE");
                    pos = at + 1;
                }
                Step::To(next) if !begins_name(buf[at + 1]) => {
                    if buf[at + 1] == b'/' {
                        self.depth = self.depth.map(|d| d.saturating_sub(1));
                    }
                    pos = next;
                }
                Step::To(next) => {
                    self.begun = true;
                    let empty = buf[..next].ends_with(b"/>");
                    let name = name_of(&buf[at + 1..next]);
                    if name != b"record" {
                        if name == b"collection" {
                            self.foreign = None;
                        }
                        self.depth = self.depth.map(|d| d + u64::from(!empty));
                        pos = next;
                        continue;
                    }
                    match self.record(buf, at, next, empty, last) {
                        Ok(frame) => return frame,
                        Err(next) => pos = next,
                    }
                }
            }
        }
        if !eof {
            return Frame::More(buf.len());
        }
        if self.depth.replace(0).is_some_and(|d| d > 0) {
            let detail = "the file ends before the element around the records does";
            let end = buf.len();
            return Frame::Bad(end..end, Trouble::new(TroubleKind::Truncated, end, detail));
        }
        if self.foreign == Some(true) {
            let detail = "not MARCXML: no collection and no record";
            return Frame::Bad(0..buf.len(), Trouble::new(TroubleKind::Syntax, 0, detail));
        }
        Frame::End
    }

    /// A record element that begins `at`, with content from `inside`: what it is, or where to go on
    /// because it is none of ours.
    fn record(
        &mut self,
        buf: &[u8],
        at: usize,
        inside: usize,
        empty: bool,
        last: bool,
    ) -> Result<Frame, usize> {
        let ours = memchr::memmem::find(&buf[at..inside], NAMESPACE.as_bytes()).is_some();
        if empty {
            return if ours { Ok(Frame::Record(at..inside)) } else { Err(inside) };
        }
        let bad = |end: usize, kind, detail: &str| {
            Ok(Frame::Bad(at..end, Trouble::new(kind, at, detail)))
        };
        match self.body(buf, inside, last) {
            Body::Ends(close, end) if ours || holds_marc(&buf[inside..close]) => {
                Ok(Frame::Record(at..end))
            }
            Body::Ends(_, end) => Err(end),
            Body::Nested(next) if holds_marc(&buf[inside..next]) => {
                bad(next, TroubleKind::Syntax, "the next record begins before this one ends")
            }
            Body::Nested(next) => {
                self.depth = self.depth.map(|d| d + 1);
                Err(next)
            }
            Body::Open if !last => Ok(Frame::More(at)),
            Body::Open if buf.len() - at > self.limit => {
                let detail = format!("a record that does not end within {} bytes", self.limit);
                bad(inside, TroubleKind::Syntax, &detail)
            }
            Body::Open if ours || holds_marc(&buf[inside..]) => {
                self.depth = self.depth.map(|_| 0);
                bad(buf.len(), TroubleKind::Truncated, "the file ends inside the record")
            }
            Body::Open => {
                self.depth = self.depth.map(|d| d + 1);
                Err(inside)
            }
        }
    }

    /// Where the content of a record element that begins at `from` ends.
    fn body(&mut self, buf: &[u8], mut from: usize, last: bool) -> Body {
        let mut hit = 0;
        loop {
            if hit < from {
                hit = self.name.find(&buf[from..]).map_or(buf.len(), |n| from + n);
            }
            if let Some(hidden) = hides(buf, from, hit) {
                match self.step(buf, hidden) {
                    Step::To(next) => from = next,
                    Step::Open if last => from = hidden + 2,
                    Step::Open => return Body::Open,
                }
                continue;
            }
            if hit == buf.len() {
                return Body::Open;
            }
            from = hit + b"record".len();
            // Back over a prefix to what the name stands after.
            let mut front = hit;
            if front > 0 && buf[front - 1] == b':' {
                front -= 1;
                while front > 0 && in_name(buf[front - 1]) {
                    front -= 1;
                }
            }
            let behind = buf[from..].iter().position(|b| !is_space(*b)).map(|n| from + n);
            let spaced = behind.is_some_and(|n| n > from);
            match (&buf[..front], behind.map(|n| buf[n])) {
                ([.., b'<', b'/'], Some(b'>')) => {
                    return Body::Ends(front - 2, from.max(behind.unwrap_or(from)) + 1);
                }
                ([.., b'<', b'/'] | [.., b'<'], None) => return Body::Open,
                ([.., b'<'], Some(b)) if spaced || b == b'>' || b == b'/' => {
                    return Body::Nested(front - 1);
                }
                _ => {}
            }
        }
    }

    /// Over the markup that begins at `at`, a `<`: a tag, or what hides tags.
    fn step(&mut self, buf: &[u8], at: usize) -> Step {
        let rest = &buf[at..];
        match rest.get(1) {
            None => Step::Open,
            Some(b'!' | b'?') => {
                for (kind, (begin, end)) in HIDES.iter().enumerate() {
                    if rest.starts_with(begin) {
                        return self.closed(buf, at + begin.len(), kind, end);
                    }
                    if begin.starts_with(rest) {
                        return Step::Open;
                    }
                }
                if !self.begun && rest.starts_with(b"<!DOCTYPE") {
                    return document_type(rest).map_or(Step::Open, |n| Step::To(at + n));
                }
                match b"<!DOCTYPE".starts_with(rest) {
                    true => Step::Open,
                    false => Step::To(at + 2),
                }
            }
            Some(b'/') => match rest.get(2) {
                Some(&b) if begins_name(b) => tag(rest).map_or(Step::Open, |n| Step::To(at + n)),
                Some(_) => Step::To(at + 2),
                None => Step::Open,
            },
            Some(&b) if begins_name(b) => tag(rest).map_or(Step::Open, |n| Step::To(at + n)),
            Some(_) => Step::To(at + 1),
        }
    }

    /// Behind the `end` of what began before `from`. No byte is searched twice, however often the
    /// same end is not found.
    fn closed(&mut self, buf: &[u8], from: usize, kind: usize, end: &[u8]) -> Step {
        let (first, last) = self.free[kind];
        let here = self.base + from as u64;
        let known = (first..last).contains(&here);
        let start = if known { (last - self.base) as usize } else { from };
        let Some(n) = buf.get(start..).and_then(|rest| memchr::memmem::find(rest, end)) else {
            // An end that is not all there may yet come.
            let searched = self.base + (buf.len() + 1).saturating_sub(end.len()).max(from) as u64;
            self.free[kind] = (if known { first } else { here }, searched.max(last));
            return Step::Open;
        };
        Step::To(start + n + end.len())
    }
}

/// The length of the tag at the front: to its `>` outside quotes. A `<` inside ends it, too, for it
/// can only be the beginning of another; none if the tag goes on behind the buffer.
fn tag(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'>' => return Some(at + 1),
            b'<' => return Some(at),
            quote @ (b'"' | b'\'') => {
                at += 1;
                at += memchr::memchr2(*quote, b'<', rest.get(at..)?)?;
                // Left at the quote, or at the `<` that the next round ends with.
                at += usize::from(rest[at] == *quote);
            }
            _ => at += 1,
        }
    }
}

/// The length of a document type, with its internal subset if it has one.
fn document_type(rest: &[u8]) -> Option<usize> {
    let (mut at, mut inside) = (1, false);
    loop {
        match rest.get(at)? {
            b'>' if !inside => return Some(at + 1),
            b'[' => inside = true,
            b']' => inside = false,
            quote @ (b'"' | b'\'') => at += 1 + memchr::memchr(*quote, &rest[at + 1..])?,
            b'<' if rest[at..].starts_with(b"<!--") => {
                at += memchr::memmem::find(&rest[at..], b"-->")?;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The name, without its prefix, of the tag whose inside this is, from its name on.
fn name_of(tag: &[u8]) -> &[u8] {
    let end = tag.iter().position(|b| !in_name(*b)).unwrap_or(tag.len());
    local(&tag[..end])
}

/// The first `<!` or `<?` in a range.
fn hides(buf: &[u8], from: usize, to: usize) -> Option<usize> {
    memchr::memchr2_iter(b'!', b'?', &buf[from..to])
        .map(|n| from + n)
        .find(|&n| n > from && buf[n - 1] == b'<')
        .map(|n| n - 1)
}

/// True if a leader or a field begins somewhere in `content`.
fn holds_marc(content: &[u8]) -> bool {
    memchr::memchr_iter(b'<', content).any(|at| {
        let rest = &content[at + 1..];
        let end = rest.iter().position(|b| !in_name(*b)).unwrap_or(rest.len());
        matches!(local(&rest[..end]), b"leader" | b"controlfield" | b"datafield")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: &str = "<record><leader/></record>";

    /// All frames, fed in blocks of `block` bytes.
    fn frames(text: &str, block: usize) -> Vec<String> {
        let bytes = text.as_bytes();
        let (mut framer, mut pos, mut end, mut found) = (Framer::new(), 0, 0, Vec::new());
        loop {
            match framer.next(&bytes[pos..end], end == bytes.len()) {
                Frame::Record(r) => {
                    found.push(text[pos + r.start..pos + r.end].to_owned());
                    pos += r.end;
                }
                Frame::Bad(r, t) => {
                    found.push(format!("{}: {}", t.kind.name(), &text[pos + r.start..pos + r.end]));
                    pos += r.end;
                }
                Frame::More(skip) => {
                    assert!(end < bytes.len(), "more after the end");
                    pos += skip;
                    end = (end + block).min(bytes.len());
                }
                Frame::End => {
                    assert_eq!(end, bytes.len());
                    return found;
                }
            }
        }
    }

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        for block in [1, 2, 7, 1000] {
            assert_eq!(frames(text, block), want, "{text} in blocks of {block}");
        }
    }

    #[test]
    fn finds_records_wherever_they_are() {
        check("", &[]);
        check("no XML < at all &", &[]);
        check(R, &[R]);
        check(&format!("<?xml version='1.0'?>\n<collection>\n{R} {R}\n</collection>\n"), &[R, R]);
        check(&format!("<!DOCTYPE c [<!ENTITY e \"<record>]>\"><!-- ]> -->]><c>{R}</c>"), &[R]);
        let spelled = "<m:record a='>' b=\"/>\"><m:leader/></m:record \n>";
        check(&format!("<m:c>{spelled}</m:c>"), &[spelled]);
    }

    #[test]
    fn tells_other_records_from_ours() {
        let oai = format!("<record><header/><metadata>{R}</metadata></record>");
        let gone = "<record><header status='deleted'/></record><record/>";
        check(&format!("<o>{oai}{gone}{oai}</o>"), &[R, R]);
        check("<o><records><record><title>x</title></record></records></o>", &[]);
        let empty = "<record xmlns='http://www.loc.gov/MARC21/slim'/>";
        check(empty, &[empty]);
    }

    #[test]
    fn looks_past_what_hides_tags() {
        for hidden in ["<!-- </record> -->", "<![CDATA[</record>]]>", "<?p </record><record>?>"] {
            let record = format!("<record><leader/>{hidden} a record! a <recorder/></record>");
            check(
                &format!("<c><!-- {R} -->{record}<![CDATA[{R}]]>{record}</c>"),
                &[&record, &record],
            );
        }
    }

    #[test]
    fn a_bad_record_does_not_end_the_file() {
        let cut = "<record><leader/><x>";
        check(&format!("<c>{cut}{R}</c>"), &[&format!("syntax: {cut}"), R]);
        check(&format!("{R}{cut}"), &[R, &format!("truncated: {cut}")]);
        check(&format!("<c>{R}"), &[R, "truncated: "]);
        check(&format!("<c {R}</c>"), &[R]);
        check(&format!("<c><!-- never closed {R}</c>"), &[R]);
        let late = "<record><!-- a --><!-- b --><leader/></record>";
        check(&format!("<!-- c -->{late}<!-- d -->"), &[late]);
        let open = "<record><leader/><!-- never closed </record>";
        check(&format!("<c>{open}{R}</c>"), &[open, R]);
    }

    #[test]
    fn what_is_too_long_is_given_up() {
        let long = format!("<record><leader/>{}", "x".repeat(100));
        let text = format!("{long}{R}");
        let mut framer = Framer::within().with_limit(60);
        assert_eq!(framer.next(&text.as_bytes()[..60], false), Frame::More(0));
        let Frame::Bad(r, _) = framer.next(&text.as_bytes()[..61], false) else { panic!() };
        assert_eq!(&text[r.clone()], "<record>");
        let rest = &text.as_bytes()[r.end..];
        let Frame::Record(r) = framer.next(rest, true) else { panic!() };
        assert_eq!(&rest[r], R.as_bytes());
    }

    #[test]
    fn what_never_closes_is_searched_once() {
        let text = "<record><leader/><!--<![CDATA[<?<x y='".repeat(20_000);
        assert_eq!(frames(&text, text.len()).len(), 20_000);
    }
}
