//! Which library does the cryptography of TLS: one for the whole process, as rustls wants it.

/// Makes ring that library, unless the program that uses us has chosen one. To be called before a
/// client is made that speaks TLS through rustls.
pub(super) fn ready() {
    // An error says that one is chosen already, be it by us.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
