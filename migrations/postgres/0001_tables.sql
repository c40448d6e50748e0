-- Texts are compared byte by byte, as in SQLite, whatever the locale of the server. Times are milliseconds since 1970, days are days since 1970, both UTC. Ids are UUIDs of
-- version 7, which sort by time.

-- One row per migration. A program that knows the migrations up to `oldest_compatible`, or newer ones, may run on this schema.
CREATE TABLE schema_versions (
    version           BIGINT NOT NULL PRIMARY KEY,
    oldest_compatible BIGINT NOT NULL
);
INSERT INTO schema_versions (version, oldest_compatible) VALUES (1, 1);

-- `address` is the form in which addresses are compared, `email` the address as first typed. `mailbox` is the mailbox that the
-- address leads to, if that has another address: without the tag, for example. `first_download` and `first_join` are the ids of
-- these signups, and `opt_in` is that of the current consent.
CREATE TABLE people (
    address        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    email          TEXT COLLATE "C" NOT NULL,
    mailbox        TEXT COLLATE "C",
    first_seen_at  BIGINT NOT NULL,
    first_download TEXT COLLATE "C",
    first_join     TEXT COLLATE "C",
    opt_in         TEXT COLLATE "C"
);
CREATE INDEX people_by_mailbox ON people (mailbox) WHERE mailbox IS NOT NULL;
CREATE INDEX people_on_waitlist ON people (address) WHERE first_join IS NOT NULL;
CREATE INDEX people_by_first_seen ON people (first_seen_at, address);

-- Downloads, and joins of the waitlist.
CREATE TABLE signups (
    id      TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('download', 'join')),
    at      BIGINT NOT NULL,
    via     TEXT COLLATE "C" NOT NULL,
    source  TEXT COLLATE "C",
    PRIMARY KEY (address, id)
);

-- Opt-ins to the monthly letter, with the id of the signup that they came with. `from_program` is 1 if a program sent it, 0
-- if a page of the site did, and NULL for imported people. `confirmed_at` is NULL if the opt-in waits for its confirmation,
-- or needed none.
CREATE TABLE consents (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    address      TEXT COLLATE "C" NOT NULL,
    at           BIGINT NOT NULL,
    via          TEXT COLLATE "C" NOT NULL,
    source       TEXT COLLATE "C",
    wording      BIGINT NOT NULL,
    from_program BIGINT,
    confirmed_at BIGINT
);
CREATE INDEX consents_by_address ON consents (address);

-- The texts that people agreed to with an opt-in, by the number in `consents`, except the built-in one, whose number is 1. People
-- from a list have 0.
CREATE TABLE wordings (
    number BIGINT           NOT NULL PRIMARY KEY,
    text   TEXT COLLATE "C" NOT NULL
);

-- Consents that were taken back.
CREATE TABLE withdrawals (
    consent TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    address TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    how     TEXT COLLATE "C" NOT NULL CHECK (how IN ('unsubscribe', 'not-me'))
);
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
    address    TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES people (address) ON DELETE CASCADE,
    consent    TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'skipped', 'confirmed', 'declined')),
    at         BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    asked_at   BIGINT,
    token      TEXT COLLATE "C"
);
CREATE UNIQUE INDEX confirmations_by_consent ON confirmations (consent);
CREATE INDEX confirmations_by_expiry ON confirmations (expires_at);
CREATE UNIQUE INDEX confirmations_by_token ON confirmations (token);

-- When a mailbox was asked last to confirm an opt-in, for as long as it must not be asked again: once under its plain address,
-- and once under all variants of it together. Both hashes, of the mailbox and of the address that was asked, stay when everything
-- else about the person is erased.
CREATE TABLE asked_mailboxes (
    mailbox TEXT COLLATE "C" NOT NULL,
    slot    TEXT COLLATE "C" NOT NULL CHECK (slot IN ('plain', 'variant')),
    address TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (mailbox, slot)
);
CREATE INDEX asked_mailboxes_by_time ON asked_mailboxes (at);

-- Mailboxes that are never mailed again, and single addresses that do not exist. `hash` is that of the one or the other, and
-- `except_hash` is the hash of the only address of the mailbox that is still mailed. The hashes stay when everything else about
-- the person is erased.
CREATE TABLE suppressions (
    hash        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at          BIGINT NOT NULL,
    reason      TEXT COLLATE "C" NOT NULL CHECK (reason IN ('not-me', 'no-mailbox', 'makers')),
    except_hash TEXT COLLATE "C"
);

-- The link by which a person unsubscribes, made when first needed and valid forever.
CREATE TABLE unsubscribe_tokens (
    token   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    address TEXT COLLATE "C" NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX unsubscribe_tokens_by_address ON unsubscribe_tokens (address);

-- The key of the hashes of addresses.
CREATE TABLE secrets (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
INSERT INTO secrets (name, value) VALUES ('addresses', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));

-- Contact messages. `answered_at` is when the makers marked it as answered.
CREATE TABLE messages (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    address     TEXT COLLATE "C" NOT NULL,
    email       TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C",
    body        TEXT COLLATE "C" NOT NULL,
    at          BIGINT NOT NULL,
    answered_at BIGINT
);
CREATE INDEX messages_by_address ON messages (address);
CREATE INDEX messages_unanswered ON messages (answered_at, id) WHERE answered_at IS NULL;

-- A hash of sender, name and text of each message of the last day, so that a repeated one is recognized.
CREATE TABLE message_hashes (
    hash    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    message TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL
);
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
    id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind           TEXT COLLATE "C" NOT NULL CHECK (kind IN ('message', 'confirmation', 'alert', 'sign-in')),
    state          TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'failed')),
    at             BIGINT NOT NULL,
    tries          BIGINT NOT NULL DEFAULT 0,
    first_tried_at BIGINT,
    lease          TEXT COLLATE "C",
    mail           TEXT COLLATE "C",
    max_digest     BIGINT,
    subject        TEXT COLLATE "C",
    body           TEXT COLLATE "C",
    last_error     TEXT COLLATE "C"
);
CREATE INDEX outbox_by_state ON outbox (kind, state, at, id);
CREATE INDEX outbox_by_lease ON outbox (lease);
CREATE INDEX outbox_by_mail ON outbox (mail);
CREATE INDEX outbox_unsent ON outbox (kind, state, id) WHERE state <> 'sent';

-- The mails of the last hour to the makers, whose number and size are limited. A row is inserted before its mail is sent, and
-- deleted if the mail certainly did not arrive. `id` is the lease of its messages.
CREATE TABLE maker_mails (
    id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind  TEXT COLLATE "C" NOT NULL CHECK (kind IN ('messages', 'summary')),
    at    BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);

-- Monthly letters. `id` is the hash of the file and its images, so that the same file is resumed. `started_at` is NULL until all recipients are
-- recorded. Then come the numbers of recipients by state; `bounced` is that of those whose copy was returned.
-- `markdown` is the whole file. A letter that is `archived` can be read on the site. `run` says who may send it: a command, the
-- service, or nobody, because somebody stopped it or for the reason in `stop_reason`.
CREATE TABLE letters (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    subject    TEXT COLLATE "C" NOT NULL,
    started_at BIGINT,
    waiting    BIGINT NOT NULL DEFAULT 0,
    uncertain  BIGINT NOT NULL DEFAULT 0,
    sent       BIGINT NOT NULL DEFAULT 0,
    refused    BIGINT NOT NULL DEFAULT 0,
    skipped    BIGINT NOT NULL DEFAULT 0,
    bounced    BIGINT NOT NULL DEFAULT 0,
    markdown   TEXT COLLATE "C" NOT NULL DEFAULT '',
    archived   BIGINT NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
    run        TEXT COLLATE "C" NOT NULL DEFAULT 'command' CHECK (run IN ('command', 'service', 'stopped')),
    stop_reason TEXT COLLATE "C"
);
CREATE INDEX letters_of_service ON letters (id) WHERE run = 'service';

-- The images of a letter, by the names that its Markdown has for them. `content` is the file in Base64.
CREATE TABLE letter_images (
    letter     TEXT COLLATE "C" NOT NULL REFERENCES letters (id) ON DELETE CASCADE,
    name       TEXT COLLATE "C" NOT NULL,
    content    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (letter, name)
);

-- Letters that are written at the desk and were not sent. `saved_at` tells whether somebody else has saved one meanwhile.
CREATE TABLE drafts (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    markdown TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL
);

CREATE TABLE draft_images (
    draft   TEXT COLLATE "C" NOT NULL REFERENCES drafts (id) ON DELETE CASCADE,
    name    TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (draft, name)
);

-- The recipients of a letter, recorded when it is started. What `at` means depends on `state`:
--   waiting    it is sent after `at`
--   uncertain  it was claimed at `at`, before the mail server knew of it, and no outcome was recorded
--   sent       the mail server accepted it at `at`
--   refused    the mail server refused it permanently at `at`
--   skipped    at `at` it turned out that it must not be sent
-- `bounce_tag` is the random part of the envelope sender of this copy. `bounce` is the status code of the last returned mail
-- that counts.
CREATE TABLE letter_recipients (
    letter     TEXT COLLATE "C" NOT NULL REFERENCES letters (id),
    address    TEXT COLLATE "C" NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'uncertain', 'sent', 'refused', 'skipped')),
    at         BIGINT NOT NULL,
    tries      BIGINT NOT NULL,
    last_error TEXT COLLATE "C",
    bounce_tag TEXT COLLATE "C",
    bounce     TEXT COLLATE "C",
    bounced_at BIGINT,
    PRIMARY KEY (letter, address)
);
CREATE INDEX letter_recipients_by_state ON letter_recipients (letter, state, at);
CREATE INDEX letter_recipients_by_address ON letter_recipients (address);
CREATE INDEX letter_recipients_by_bounce_tag ON letter_recipients (bounce_tag);

-- Who was claimed for a letter in which month: one letter a month. The hash of the mailbox stays when everything else about
-- the person is erased.
CREATE TABLE letter_months (
    hash   TEXT COLLATE "C" NOT NULL,
    month  TEXT COLLATE "C" NOT NULL,
    letter TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (hash, month)
);
CREATE INDEX letter_months_by_month ON letter_months (month);

-- A row is never deleted, so that no version or file name is used again.
-- `version` has all three numbers, so that 2.1 and 2.1.0 are one, and `written` is as the makers wrote it. `phased_days` is 0 if
-- everybody gets the release at once.
CREATE TABLE releases (
    version          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    written          TEXT COLLATE "C" NOT NULL,
    file             TEXT COLLATE "C" NOT NULL UNIQUE,
    external_url     TEXT COLLATE "C",
    length           BIGINT NOT NULL,
    sha256           TEXT COLLATE "C" NOT NULL,
    notes            TEXT COLLATE "C" NOT NULL,
    build            TEXT COLLATE "C",
    signature        TEXT COLLATE "C",
    minimum_macos    TEXT COLLATE "C",
    channel          TEXT COLLATE "C" NOT NULL,
    critical         BIGINT NOT NULL CHECK (critical IN (0, 1)),
    phased_days      BIGINT NOT NULL,
    published_at     BIGINT NOT NULL,
    withdrawn_at     BIGINT,
    withdrawn_reason TEXT COLLATE "C"
);

-- Tokens by which programs of the makers publish releases over HTTP. Only the hash of a token is kept. `last_day` is a number of
-- days since 1970 and NULL where a token works until it is deleted; `used_at` is less exact than an hour.
CREATE TABLE tokens (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash       TEXT COLLATE "C" NOT NULL UNIQUE,
    may        TEXT COLLATE "C" NOT NULL CHECK (may IN ('publish')),
    created_at BIGINT NOT NULL,
    last_day   BIGINT,
    used_at    BIGINT
);

-- Links by which a maker signs in to the desk. `id` is also that of its mail in the outbox. `hash` is that of the last part of the
-- link, and NULL once it was used. `browser` is the hash of the cookie of the browser that asked for the mail, and NULL if a
-- command printed the link.
CREATE TABLE sign_in_links (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash       TEXT COLLATE "C" UNIQUE,
    name       TEXT COLLATE "C" NOT NULL,
    browser    TEXT COLLATE "C",
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

-- Sessions of the desk. Only the hash of the cookie is kept. `used_at` is less exact than an hour.
CREATE TABLE sessions (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash       TEXT COLLATE "C" NOT NULL UNIQUE,
    name       TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL
);

-- What the makers did. Nothing here names a visitor. `name` is that of the token or session, and NULL for a command.
CREATE TABLE activity (
    id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL,
    via  TEXT COLLATE "C" NOT NULL CHECK (via IN ('command', 'token', 'session')),
    name TEXT COLLATE "C",
    what TEXT COLLATE "C" NOT NULL
);

-- Grows with each change of what every instance keeps in memory, so that they read it again.
CREATE TABLE revisions (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
);

-- How often what happened on which day, added to in the transaction that records it. `via` and `name` are empty where there
-- is none. Nothing here is about a person, and it stays when one is erased.
--   download, join  signups      person       addresses of which neither was known before
--   opt-in          consents     unsubscribe  consents that were taken back
--   message         messages     tool, image  calls by tool, disk images that were sent by version
--   update          update checks by version; macos, processor: the same by what their profile says
CREATE TABLE counts (
    day   BIGINT NOT NULL,
    kind  TEXT COLLATE "C" NOT NULL CHECK (kind IN
        ('download', 'person', 'opt-in', 'join', 'message', 'unsubscribe', 'tool', 'image', 'update', 'macos', 'processor')),
    via   TEXT COLLATE "C" NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    times BIGINT NOT NULL,
    PRIMARY KEY (day, kind, via, name)
);

-- The same by source. Anybody can invent one, so once a day only the largest ones of each day are kept; the others are what
-- `counts` has more. The empty source stands for none, and for one with an @, which may be an address.
CREATE TABLE sources (
    day        BIGINT NOT NULL,
    source     TEXT COLLATE "C" NOT NULL,
    downloads  BIGINT NOT NULL,
    new_people BIGINT NOT NULL,
    opt_ins    BIGINT NOT NULL,
    joins      BIGINT NOT NULL,
    PRIMARY KEY (day, source)
);

-- How often what was read on which day, by reader. There are a few dozen readers, a fixed list in the program; `tools` are
-- calls of MCP tools.
CREATE TABLE reads (
    day       BIGINT NOT NULL,
    reader    TEXT COLLATE "C" NOT NULL,
    pages     BIGINT NOT NULL,
    markdown  BIGINT NOT NULL,
    briefings BIGINT NOT NULL,
    tools     BIGINT NOT NULL,
    PRIMARY KEY (day, reader)
);

-- Certificates from an ACME authority, shared by all instances. An account belongs to its authority (`directory`), a
-- certificate to its authority and host names.
CREATE TABLE acme_accounts (
    directory   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    credentials TEXT COLLATE "C" NOT NULL
);

-- `chain` and `private_key` are NULL until the first order succeeds. One instance orders until `lease_until`; the number of
-- `failures` in a row, the last `failure` and `next_attempt` survive a restart.
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
    token      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    answer     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);

-- When something was done last that all instances together do once in a period, or that a command did.
CREATE TABLE tasks (
    name    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL,
    -- Why it has failed since then.
    failure TEXT COLLATE "C"
);

-- The app that the database belongs to: that of the first site with a folder of its own.
CREATE TABLE app (
    id   BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    name TEXT COLLATE "C" NOT NULL
);
