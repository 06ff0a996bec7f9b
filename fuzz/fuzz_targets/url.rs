//! Any text as the URL of a store: it is refused or read, what is read is read again from what is shown where
//! nothing of it is hidden, and no password is shown.
#![no_main]

use steelyard::store::{Secrets, Url, is_url, misnamed, shown};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = shown(text);
    let secrets = Secrets::of([text.to_owned()].into_iter());
    let _ = secrets.hidden(text);
    if let Some(error) = misnamed(text) {
        assert!(!is_url(text), "{error}");
    }
    let Ok(mut url) = Url::parse(text) else { return };
    let shown = url.to_string();
    if !shown.contains("***") {
        let again = Url::parse(&shown).expect("what was read once");
        assert_eq!(again.to_string(), shown);
        assert_eq!((&again.scheme, &again.user, &again.path), (&url.scheme, &url.user, &url.path));
        assert_eq!(again.hosts, url.hosts);
    }
    let _ = (url.one_host(1), url.file_path());
    let _ = (url.take("table"), url.take_flag("tls"), url.take_parsed::<u64>("pool"));
    let _ = url.done();
});
