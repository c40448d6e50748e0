-- One row a person. `address` is the form in which addresses are compared, `email` the address as
-- first typed. `first_download` and `first_join` name the event that came first, `opt_in` the
-- consent that stands now: whoever wrote them can tell its own from an earlier one.
CREATE TABLE people (
    address        TEXT    NOT NULL PRIMARY KEY,
    email          TEXT    NOT NULL,
    first_seen_at  BIGINT  NOT NULL,
    first_download TEXT,
    first_join     TEXT,
    opt_in         TEXT
);

CREATE TABLE events (
    id      TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('download', 'join')),
    at      BIGINT  NOT NULL,
    via     TEXT    NOT NULL,
    source  TEXT
);
CREATE INDEX events_by_address ON events (address);

CREATE TABLE consents (
    id      TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL,
    at      BIGINT  NOT NULL,
    via     TEXT    NOT NULL,
    source  TEXT,
    wording BIGINT  NOT NULL
);
CREATE INDEX consents_by_address ON consents (address);

CREATE TABLE messages (
    id      TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL,
    email   TEXT    NOT NULL,
    name    TEXT,
    body    TEXT    NOT NULL,
    at      BIGINT  NOT NULL
);
CREATE INDEX messages_by_address ON messages (address);

-- Tells a repeated message from a new one: the digest of sender, name and words, and the message
-- that was stored for it last.
CREATE TABLE message_digests (
    digest  TEXT    NOT NULL PRIMARY KEY,
    message TEXT    NOT NULL,
    at      BIGINT  NOT NULL
);
