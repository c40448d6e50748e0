-- Opt-ins that count once the person has confirmed them by mail, one row per person. `consent` is the row of `consents`
-- that waits for it. What `at` means depends on `state`:
--   waiting    the mail is sent after `at`
--   leased     an instance is sending the mail; after `at` another one may
--   sent       the mail server accepted the mail at `at`
--   failed     the mail was given up at `at`
--   skipped    at `at` it turned out that the address must not be mailed
--   confirmed  the person confirmed at `at`
--   declined   the owner of the address said at `at` that they had not asked; `consent` is gone
-- `token` is the last part of the link, and NULL until the mail is sent first, at `asked_at`. The row and its opt-in are
-- deleted after `expires_at`.
CREATE TABLE confirmations (
    address      TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES people (address) ON DELETE CASCADE,
    consent      TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'failed', 'skipped', 'confirmed', 'declined')),
    at           BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    tries        BIGINT NOT NULL,
    asked_at     BIGINT,
    token        TEXT COLLATE "C",
    trouble      TEXT COLLATE "C"
);
CREATE INDEX confirmations_by_state ON confirmations (state, at);
CREATE INDEX confirmations_by_expiry ON confirmations (expires_at);
CREATE UNIQUE INDEX confirmations_by_token ON confirmations (token);

-- When a mailbox was asked last, for as long as it must not be asked again. The hash stays when everything else about the
-- person is erased.
CREATE TABLE asked_addresses (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL
);
CREATE INDEX asked_addresses_by_time ON asked_addresses (at);

-- NULL if the opt-in waits for its confirmation, or needed none.
ALTER TABLE consents ADD COLUMN confirmed_at BIGINT;

-- `bounce_tag` is the random part of the envelope sender of this copy. `bounce` is the status code of the last returned
-- mail that counts.
ALTER TABLE letter_recipients ADD COLUMN bounce_tag TEXT COLLATE "C";
ALTER TABLE letter_recipients ADD COLUMN bounce TEXT COLLATE "C";
ALTER TABLE letter_recipients ADD COLUMN bounced_at BIGINT;
CREATE INDEX letter_recipients_by_bounce_tag ON letter_recipients (bounce_tag);

-- When something was done last that all instances together do once in a period, or that a command did.
CREATE TABLE tasks (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (18, 9);
