-- Mails to the makers of the last hour, whose number and size are limited. A row is inserted before its mail
-- is sent, and deleted if the mail certainly did not arrive. `id` is the lease of its messages.
CREATE TABLE maker_mails (
    id    TEXT NOT NULL PRIMARY KEY,
    kind  TEXT NOT NULL CHECK (kind IN ('messages', 'summary')),
    at    INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- All messages of a mail are found by it.
CREATE INDEX outbox_by_mail ON outbox (mail);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (12, 9);
