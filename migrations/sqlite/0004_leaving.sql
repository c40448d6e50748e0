-- The link by which a person leaves the monthly email, made when first needed and good for ever.
CREATE TABLE unsubscribe_tokens (
    token   TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX unsubscribe_tokens_by_address ON unsubscribe_tokens (address);

-- Opt-ins that were taken back: `consent` is the one that stood until then.
CREATE TABLE withdrawals (
    consent TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    how     TEXT    NOT NULL CHECK (how IN ('unsubscribe', 'not-me'))
) WITHOUT ROWID;
CREATE INDEX withdrawals_by_address ON withdrawals (address);

-- Addresses that are never mailed again, kept as hashes only, so that they are remembered even when
-- everything else of the person is erased.
CREATE TABLE suppressions (
    hash    TEXT    NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    reason  TEXT    NOT NULL CHECK (reason IN ('not-me', 'no-mailbox', 'makers'))
) WITHOUT ROWID;

-- The key of those hashes, made here once.
CREATE TABLE secrets (
    name    TEXT    NOT NULL PRIMARY KEY,
    value   TEXT    NOT NULL
) WITHOUT ROWID;
INSERT INTO secrets (name, value) VALUES ('addresses', lower(hex(randomblob(32))));
