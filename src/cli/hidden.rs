//! Redaction of passwords in what is printed, even where a URL is too malformed to tell which part is the password:
//! whatever stands before the last `@` of an argument with `://` may be one.

use steelyard::store::Secrets;

/// A text without the passwords of this program's arguments.
pub fn without_passwords(text: &str) -> String {
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    without(text, args)
}

fn without(text: &str, args: impl Iterator<Item = String>) -> String {
    Secrets::of(args).hidden(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use steelyard::{bench::stores::Target, store};

    use super::*;

    #[test]
    fn what_is_no_password_stays() {
        let of = |text: &str, arg: &str| without(text, [arg.to_owned()].into_iter());
        assert_eq!(of("redis://h:1: refused", "redis://h:1"), "redis://h:1: refused");
        assert_eq!(of("no redis://:abc@h", "redis://:abc@h"), "no redis://***h");
        assert_eq!(of("a file", "secret.txt"), "a file");
        assert_eq!(of("?token=hush1", "s3://b?token=hush1&x=y"), "?token=***");
    }

    proptest! {
        #[test]
        fn no_error_of_a_url_has_its_password(
            scheme in "(redis|postgres|mysql|mongodb|couchdb|s3|postgress|nonsense|x y)",
            slashes in "(//|/|)",
            user in "[a-z]{0,4}",
            before in "[a-z0-9/?#@:%&=, \\[\\]\\\\\"']{0,6}",
            after in "[a-z0-9/?#@:%&=, \\[\\]\\\\\"']{0,6}",
            host in "[a-z0-9:/?\\[\\]%,. ]{0,12}",
        ) {
            let url = format!("{scheme}:{slashes}{user}:{before}MARKED{after}@{host}");
            let mut said = Vec::new();
            said.extend(store::Url::parse(&url).err().map(|e| e.to_string()));
            said.extend(store::Url::parse(&url).ok().map(|url| url.to_string()));
            said.extend(Target::parse(&url).err().map(|e| e.to_string()));
            said.push(format!("error: invalid value '{url}' for '--on <STORE>'"));
            said.push(format!("{url:?}: no such file"));
            for said in said {
                let shown = without(&said, ["steelyard".to_owned(), url.clone()].into_iter());
                prop_assert!(!shown.contains("MARKED"), "{url}: {shown}");
            }
        }

        #[test]
        fn the_library_by_itself_shows_no_password_of_what_does_not_parse(
            scheme in "(redis|postgres|mysql|mongodb)",
            before in "[a-z0-9/?@:% ]{0,6}",
            after in "[a-z0-9/?@:% ]{0,6}",
            host in "[a-z0-9:.]{0,12}",
        ) {
            let url = format!("{scheme}://u:{before}MARKED{after}@{host}");
            if let Err(e) = store::Url::parse(&url) {
                prop_assert!(!e.to_string().contains("MARKED"), "{url}: {e}");
            }
        }
    }
}
