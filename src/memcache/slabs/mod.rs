//! How memcached's memory holds what is stored: a model, exact for memcached 1.6.
