# The few things one does here. `just` lists them; each is also a plain command.

# Everything a change must pass.
test:
    scripts/test

# The guided tour: what people see first.
tour:
    cargo run --release -- bench

# The MARC codec's speed, and against its peers.
bench FILE:
    cargo bench -p steelyard-format --bench marc -- {{FILE}}
    scripts/peers.py {{FILE}}

# Every decoder under random bytes, SECONDS each.
fuzz SECONDS="60":
    scripts/fuzz {{SECONDS}}

# What the library crates promise, against the last release.
semver:
    scripts/semver

# Licences and known vulnerabilities of what we depend on.
deny:
    scripts/deny
