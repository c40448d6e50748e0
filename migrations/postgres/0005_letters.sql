-- Monthly letters. `id` is the digest of the file, so that the same file goes on where it was.
CREATE TABLE letters (
    id         TEXT    NOT NULL PRIMARY KEY,
    subject    TEXT    NOT NULL,
    started_at BIGINT  NOT NULL
);

-- Whom a letter goes to, written down when it is started. What `at` means depends on `state`:
--   waiting    it goes out after `at`
--   uncertain  it was claimed at `at`, before the mail server heard of it, and nothing was noted since
--   sent       the mail server took it at `at`
--   refused    the mail server refused it for good at `at`
--   skipped    at `at` it turned out that it was not to be sent
CREATE TABLE letter_recipients (
    letter  TEXT    NOT NULL REFERENCES letters (id),
    address TEXT    NOT NULL REFERENCES people (address) ON DELETE CASCADE,
    state   TEXT    NOT NULL CHECK (state IN ('waiting', 'uncertain', 'sent', 'refused', 'skipped')),
    at      BIGINT  NOT NULL,
    tries   BIGINT  NOT NULL,
    trouble TEXT,
    PRIMARY KEY (letter, address)
);
CREATE INDEX letter_recipients_by_state ON letter_recipients (letter, state, at);
CREATE INDEX letter_recipients_by_address ON letter_recipients (address);

-- Who has been claimed for a letter in which month: one letter a month, and no second row. The hash
-- of the address stays when everything else of the person is erased.
CREATE TABLE letter_months (
    hash   TEXT NOT NULL,
    month  TEXT NOT NULL,
    letter TEXT NOT NULL,
    PRIMARY KEY (hash, month)
);
