-- Certificates from an ACME authority, shared by all instances. An account belongs to its authority (`directory`), a
-- certificate to its authority and host names.
CREATE TABLE acme_accounts (
    directory   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    credentials TEXT COLLATE "C" NOT NULL
);

-- `chain` and `private_key` are NULL until the first order succeeds. `lease_until` is the time until which one instance
-- orders; `failures` in a row, the last `failure` and `next_attempt` survive a restart.
CREATE TABLE acme_certificates (
    directory    TEXT COLLATE "C" NOT NULL,
    hosts        TEXT COLLATE "C" NOT NULL,
    chain        TEXT COLLATE "C",
    private_key  TEXT COLLATE "C",
    failures     BIGINT NOT NULL,
    failure      TEXT COLLATE "C",
    next_attempt BIGINT NOT NULL,
    lease_until  BIGINT NOT NULL,
    PRIMARY KEY (directory, hosts)
);

-- What every instance answers to the authority.
CREATE TABLE acme_challenges (
    token   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    answer  TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (17, 9);
