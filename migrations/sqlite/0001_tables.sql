-- Texts are compared byte by byte. Times are milliseconds since 1970, days are days since 1970, both UTC. Ids are UUIDs of
-- version 7, which sort by time.

-- One row per migration. A program that knows the migrations up to `oldest_compatible`, or newer ones, may run on this schema.
CREATE TABLE schema_versions (
    version           INTEGER NOT NULL PRIMARY KEY,
    oldest_compatible INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO schema_versions (version, oldest_compatible) VALUES (1, 1);

-- `address` is the form in which addresses are compared, `email` the address as first typed. `mailbox` is the mailbox that the
-- address leads to, if that has another address: without the tag, for example. `first_download` and `first_join` are the ids of
-- these signups, and `opt_in` is that of the current consent.
CREATE TABLE people (
    address        TEXT    NOT NULL PRIMARY KEY,
    email          TEXT    NOT NULL,
    mailbox        TEXT,
    first_seen_at  INTEGER NOT NULL,
    first_download TEXT,
    first_join     TEXT,
    opt_in         TEXT
) WITHOUT ROWID;
CREATE INDEX people_by_mailbox ON people (mailbox) WHERE mailbox IS NOT NULL;
CREATE INDEX people_on_waitlist ON people (address) WHERE first_join IS NOT NULL;
CREATE INDEX people_by_first_seen ON people (first_seen_at, address);

-- Downloads, and joins of the waitlist.
CREATE TABLE signups (
    id      TEXT    NOT NULL,
    address TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('download', 'join')),
    at      INTEGER NOT NULL,
    via     TEXT    NOT NULL,
    source  TEXT,
    PRIMARY KEY (address, id)
) WITHOUT ROWID;

-- Opt-ins to the monthly letter, with the id of the signup that they came with. `from_program` is 1 if a program sent it, 0
-- if a page of the site did, and NULL for imported people. `confirmed_at` is NULL if the opt-in waits for its confirmation,
-- or needed none.
CREATE TABLE consents (
    id           TEXT    NOT NULL PRIMARY KEY,
    address      TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    via          TEXT    NOT NULL,
    source       TEXT,
    wording      INTEGER NOT NULL,
    from_program INTEGER,
    confirmed_at INTEGER
) WITHOUT ROWID;
CREATE INDEX consents_by_address ON consents (address);

-- The texts that people agreed to with an opt-in, by the number in `consents`, except the built-in one, whose number is 1. People
-- from a list have 0.
CREATE TABLE wordings (
    number INTEGER NOT NULL PRIMARY KEY,
    text   TEXT    NOT NULL
) WITHOUT ROWID;

-- Consents that were taken back.
CREATE TABLE withdrawals (
    consent TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    how     TEXT    NOT NULL CHECK (how IN ('unsubscribe', 'not-me'))
) WITHOUT ROWID;
CREATE INDEX withdrawals_by_address ON withdrawals (address);

-- Opt-ins that count once the person has confirmed them by mail, at most one per person. `consent` is the row of `consents`
-- that waits; its mail is in the outbox under the same id.
--   pending    the mail is sent next, or was
--   skipped    at `at` it turned out that the address must not be asked
--   confirmed  the person confirmed at `at`
--   declined   the owner of the address said at `at` that they had not asked; `consent` is gone
-- `token` is the last part of the link, and NULL until the mail is sent first, at `asked_at`. The row and its opt-in are
-- deleted after `expires_at`.
CREATE TABLE confirmations (
    address    TEXT    NOT NULL PRIMARY KEY REFERENCES people (address) ON DELETE CASCADE,
    consent    TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'skipped', 'confirmed', 'declined')),
    at         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    asked_at   INTEGER,
    token      TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX confirmations_by_consent ON confirmations (consent);
CREATE INDEX confirmations_by_expiry ON confirmations (expires_at);
CREATE UNIQUE INDEX confirmations_by_token ON confirmations (token);

-- When a mailbox was asked last to confirm an opt-in, for as long as it must not be asked again: once under its plain address,
-- and once under all variants of it together. Both hashes, of the mailbox and of the address that was asked, stay when everything
-- else about the person is erased.
CREATE TABLE asked_mailboxes (
    mailbox TEXT NOT NULL,
    slot    TEXT NOT NULL CHECK (slot IN ('plain', 'variant')),
    address TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (mailbox, slot)
) WITHOUT ROWID;
CREATE INDEX asked_mailboxes_by_time ON asked_mailboxes (at);

-- Mailboxes that are never mailed again, and single addresses that do not exist. `hash` is that of the one or the other, and
-- `except_hash` is the hash of the only address of the mailbox that is still mailed. The hashes stay when everything else about
-- the person is erased.
CREATE TABLE suppressions (
    hash        TEXT    NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    reason      TEXT    NOT NULL CHECK (reason IN ('not-me', 'no-mailbox', 'makers')),
    except_hash TEXT
) WITHOUT ROWID;

-- The link by which a person unsubscribes, made when first needed and valid forever.
CREATE TABLE unsubscribe_tokens (
    token   TEXT    NOT NULL PRIMARY KEY,
    address TEXT    NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX unsubscribe_tokens_by_address ON unsubscribe_tokens (address);

-- The key of the hashes of addresses.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO secrets (name, value) VALUES ('addresses', lower(hex(randomblob(32))));

-- Contact messages. `answered_at` is when the makers marked it as answered.
CREATE TABLE messages (
    id          TEXT    NOT NULL PRIMARY KEY,
    address     TEXT    NOT NULL,
    email       TEXT    NOT NULL,
    name        TEXT,
    body        TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    answered_at INTEGER
) WITHOUT ROWID;
CREATE INDEX messages_by_address ON messages (address);
CREATE INDEX messages_unanswered ON messages (answered_at, id) WHERE answered_at IS NULL;

-- A hash of sender, name and text of each message of the last day, so that a repeated one is recognized.
CREATE TABLE message_hashes (
    hash    TEXT    NOT NULL PRIMARY KEY,
    message TEXT    NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX message_hashes_by_time ON message_hashes (at);

-- Mail that waits, and what became of it. `id` is that of the contact message, of the opt-in that is to be confirmed, of a link
-- to sign in to the desk, or of an alert; the last two have their subject and text here. What `at` means depends on `state`:
--   waiting  it is sent after `at`
--   leased   whoever has `lease` is sending it; after `at` another one may
--   sent     the mail server accepted it at `at`
--   failed   it was given up at `at`
-- `mail` is the mail that the message was put in last, as long as that mail may have arrived: then it goes again in the very
-- same mail. `max_digest` is how many messages may share a mail, once the mail server did not accept one: 1 if it was sent alone.
CREATE TABLE outbox (
    id             TEXT    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL CHECK (kind IN ('message', 'confirmation', 'alert', 'sign-in')),
    state          TEXT    NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'failed')),
    at             INTEGER NOT NULL,
    tries          INTEGER NOT NULL DEFAULT 0,
    first_tried_at INTEGER,
    lease          TEXT,
    mail           TEXT,
    max_digest     INTEGER,
    subject        TEXT,
    body           TEXT,
    last_error     TEXT
) WITHOUT ROWID;
CREATE INDEX outbox_by_state ON outbox (kind, state, at, id);
CREATE INDEX outbox_by_lease ON outbox (lease);
CREATE INDEX outbox_by_mail ON outbox (mail);
CREATE INDEX outbox_unsent ON outbox (kind, state, id) WHERE state <> 'sent';

-- The mails of the last hour to the makers, whose number and size are limited. A row is inserted before its mail is sent, and
-- deleted if the mail certainly did not arrive. `id` is the lease of its messages.
CREATE TABLE maker_mails (
    id    TEXT    NOT NULL PRIMARY KEY,
    kind  TEXT    NOT NULL CHECK (kind IN ('messages', 'summary')),
    at    INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- Monthly letters. `id` is the hash of the file and its images, so that the same file is resumed. `started_at` is NULL until all recipients are
-- recorded. Then come the numbers of recipients by state; `bounced` is that of those whose copy was returned.
-- `markdown` is the whole file. A letter that is `archived` can be read on the site. `run` says who may send it: a command, the
-- service, or nobody, because somebody stopped it or for the reason in `stop_reason`.
CREATE TABLE letters (
    id         TEXT    NOT NULL PRIMARY KEY,
    subject    TEXT    NOT NULL,
    started_at INTEGER,
    waiting    INTEGER NOT NULL DEFAULT 0,
    uncertain  INTEGER NOT NULL DEFAULT 0,
    sent       INTEGER NOT NULL DEFAULT 0,
    refused    INTEGER NOT NULL DEFAULT 0,
    skipped    INTEGER NOT NULL DEFAULT 0,
    bounced    INTEGER NOT NULL DEFAULT 0,
    markdown   TEXT    NOT NULL DEFAULT '',
    archived   INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
    run        TEXT    NOT NULL DEFAULT 'command' CHECK (run IN ('command', 'service', 'stopped')),
    stop_reason TEXT
) WITHOUT ROWID;
CREATE INDEX letters_of_service ON letters (id) WHERE run = 'service';

-- The images of a letter, by the names that its Markdown has for them. `content` is the file in Base64.
CREATE TABLE letter_images (
    letter     TEXT    NOT NULL REFERENCES letters (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    PRIMARY KEY (letter, name)
) WITHOUT ROWID;

-- Letters that are written at the desk and were not sent. `saved_at` tells whether somebody else has saved one meanwhile.
CREATE TABLE drafts (
    id       TEXT    NOT NULL PRIMARY KEY,
    markdown TEXT    NOT NULL,
    saved_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE draft_images (
    draft   TEXT    NOT NULL REFERENCES drafts (id) ON DELETE CASCADE,
    name    TEXT    NOT NULL,
    content TEXT    NOT NULL,
    PRIMARY KEY (draft, name)
) WITHOUT ROWID;

-- The recipients of a letter, recorded when it is started. What `at` means depends on `state`:
--   waiting    it is sent after `at`
--   uncertain  it was claimed at `at`, before the mail server knew of it, and no outcome was recorded
--   sent       the mail server accepted it at `at`
--   refused    the mail server refused it permanently at `at`
--   skipped    at `at` it turned out that it must not be sent
-- `bounce_tag` is the random part of the envelope sender of this copy. `bounce` is the status code of the last returned mail
-- that counts.
CREATE TABLE letter_recipients (
    letter     TEXT    NOT NULL REFERENCES letters (id),
    address    TEXT    NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'uncertain', 'sent', 'refused', 'skipped')),
    at         INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    last_error TEXT,
    bounce_tag TEXT,
    bounce     TEXT,
    bounced_at INTEGER,
    PRIMARY KEY (letter, address)
) WITHOUT ROWID;
CREATE INDEX letter_recipients_by_state ON letter_recipients (letter, state, at);
CREATE INDEX letter_recipients_by_address ON letter_recipients (address);
CREATE INDEX letter_recipients_by_bounce_tag ON letter_recipients (bounce_tag);

-- Who was claimed for a letter in which month: one letter a month. The hash of the mailbox stays when everything else about
-- the person is erased.
CREATE TABLE letter_months (
    hash   TEXT NOT NULL,
    month  TEXT NOT NULL,
    letter TEXT NOT NULL,
    PRIMARY KEY (hash, month)
) WITHOUT ROWID;
CREATE INDEX letter_months_by_month ON letter_months (month);

-- A row is never deleted, so that no version or file name is used again.
-- `version` has all three numbers, so that 2.1 and 2.1.0 are one, and `written` is as the makers wrote it. `phased_days` is 0 if
-- everybody gets the release at once.
CREATE TABLE releases (
    version          TEXT NOT NULL PRIMARY KEY,
    written          TEXT NOT NULL,
    file             TEXT NOT NULL UNIQUE,
    external_url     TEXT,
    length           INTEGER NOT NULL,
    sha256           TEXT NOT NULL,
    notes            TEXT NOT NULL,
    build            TEXT,
    signature        TEXT,
    minimum_macos    TEXT,
    channel          TEXT NOT NULL,
    critical         INTEGER NOT NULL CHECK (critical IN (0, 1)),
    phased_days      INTEGER NOT NULL,
    published_at     INTEGER NOT NULL,
    withdrawn_at     INTEGER,
    withdrawn_reason TEXT
) WITHOUT ROWID;

-- Tokens by which programs of the makers publish releases over HTTP. Only the hash of a token is kept. `last_day` is a number of
-- days since 1970 and NULL where a token works until it is deleted; `used_at` is less exact than an hour.
CREATE TABLE tokens (
    name       TEXT    NOT NULL PRIMARY KEY,
    hash       TEXT    NOT NULL UNIQUE,
    may        TEXT    NOT NULL CHECK (may IN ('publish')),
    created_at INTEGER NOT NULL,
    last_day   INTEGER,
    used_at    INTEGER
) WITHOUT ROWID;

-- Links by which a maker signs in to the desk. `id` is also that of its mail in the outbox. `hash` is that of the last part of the
-- link, and NULL once it was used. `browser` is the hash of the cookie of the browser that asked for the mail, and NULL if a
-- command printed the link.
CREATE TABLE sign_in_links (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       TEXT UNIQUE,
    name       TEXT NOT NULL,
    browser    TEXT,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

-- Sessions of the desk. Only the hash of the cookie is kept. `used_at` is less exact than an hour.
CREATE TABLE sessions (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- What the makers did. Nothing here names a visitor. `name` is that of the token or session, and NULL for a command.
CREATE TABLE activity (
    id   TEXT NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL,
    via  TEXT NOT NULL CHECK (via IN ('command', 'token', 'session')),
    name TEXT,
    what TEXT NOT NULL
) WITHOUT ROWID;

-- Grows with each change of what every instance keeps in memory, so that they read it again.
CREATE TABLE revisions (
    name   TEXT    NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;

-- How often what happened on which day, added to in the transaction that records it. `via` and `name` are empty where there
-- is none. Nothing here is about a person, and it stays when one is erased.
--   download, join  signups      person       addresses of which neither was known before
--   opt-in          consents     unsubscribe  consents that were taken back
--   message         messages     tool, image  calls by tool, disk images that were sent by version
--   update          update checks by version; macos, processor: the same by what their profile says
CREATE TABLE counts (
    day   INTEGER NOT NULL,
    kind  TEXT    NOT NULL CHECK (kind IN
        ('download', 'person', 'opt-in', 'join', 'message', 'unsubscribe', 'tool', 'image', 'update', 'macos', 'processor')),
    via   TEXT    NOT NULL,
    name  TEXT    NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (day, kind, via, name)
) WITHOUT ROWID;

-- The same by source. Anybody can invent one, so once a day only the largest ones of each day are kept; the others are what
-- `counts` has more. The empty source stands for none, and for one with an @, which may be an address.
CREATE TABLE sources (
    day        INTEGER NOT NULL,
    source     TEXT    NOT NULL,
    downloads  INTEGER NOT NULL,
    new_people INTEGER NOT NULL,
    opt_ins    INTEGER NOT NULL,
    joins      INTEGER NOT NULL,
    PRIMARY KEY (day, source)
) WITHOUT ROWID;

-- How often what was read on which day, by reader. There are a few dozen readers, a fixed list in the program; `tools` are
-- calls of MCP tools.
CREATE TABLE reads (
    day       INTEGER NOT NULL,
    reader    TEXT    NOT NULL,
    pages     INTEGER NOT NULL,
    markdown  INTEGER NOT NULL,
    briefings INTEGER NOT NULL,
    tools     INTEGER NOT NULL,
    PRIMARY KEY (day, reader)
) WITHOUT ROWID;

-- Certificates from an ACME authority, shared by all instances. An account belongs to its authority (`directory`), a
-- certificate to its authority and host names.
CREATE TABLE acme_accounts (
    directory   TEXT NOT NULL PRIMARY KEY,
    credentials TEXT NOT NULL
) WITHOUT ROWID;

-- `chain` and `private_key` are NULL until the first order succeeds. One instance orders until `lease_until`; the number of
-- `failures` in a row, the last `failure` and `next_attempt` survive a restart.
CREATE TABLE acme_certificates (
    directory    TEXT    NOT NULL,
    hosts        TEXT    NOT NULL,
    chain        TEXT,
    private_key  TEXT,
    failures     INTEGER NOT NULL,
    failure      TEXT,
    next_attempt INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL,
    PRIMARY KEY (directory, hosts)
) WITHOUT ROWID;

-- What every instance answers to the authority.
CREATE TABLE acme_challenges (
    token      TEXT    NOT NULL PRIMARY KEY,
    answer     TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- When something was done last that all instances together do once in a period, or that a command did.
CREATE TABLE tasks (
    name    TEXT    NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    -- Why it has failed since then.
    failure TEXT
) WITHOUT ROWID;

-- The app that the database belongs to: that of the first site with a folder of its own.
CREATE TABLE app (
    id   INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    name TEXT    NOT NULL
) WITHOUT ROWID;
