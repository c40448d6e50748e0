-- The way of each message to the makers' mailbox, one row a message. What `at` means depends on `state`:
--   waiting  it goes with the first mail after `at`
--   leased   whoever holds `lease` is handing it over; after `at` anybody may
--   sent     the mail server took it at `at`
--   failed   it was given up on at `at`
-- `mail` names the mail it was put in last, as long as that mail may have arrived: then it goes again
-- in the very same mail. `most_together` is how many may share a mail, once one with more was refused.
CREATE TABLE outbox (
    message        TEXT    NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    state          TEXT    NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'failed')),
    at             BIGINT  NOT NULL,
    tries          BIGINT  NOT NULL,
    first_tried_at BIGINT,
    lease          TEXT,
    mail           TEXT,
    most_together  BIGINT,
    trouble        TEXT
);
CREATE INDEX outbox_by_state ON outbox (state, at);
CREATE INDEX outbox_by_lease ON outbox (lease);

-- Messages that came before there was a way.
INSERT INTO outbox (message, state, at, tries) SELECT id, 'waiting', at, 0 FROM messages;
