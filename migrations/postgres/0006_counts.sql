-- How often what happened on which day, counted in the transaction that records it, so that nobody
-- ever recounts. `day` is the number of days since the start of 1970, UTC; `via` and `source` are
-- empty where there is none. A source with an @ may be an address and is left out: nothing here is
-- about a person, and it stays when one is erased.
--   download, join  requests        person       addresses of which neither was known before
--   opt-in          consents        unsubscribe  consents taken back
--   message         messages        tool, image  calls by tool, disk images sent by version
CREATE TABLE counts (
    day    BIGINT  NOT NULL,
    kind   TEXT    NOT NULL CHECK (kind IN ('download', 'person', 'opt-in', 'join', 'message', 'unsubscribe', 'tool', 'image')),
    via    TEXT    NOT NULL,
    source TEXT    NOT NULL,
    times  BIGINT  NOT NULL,
    PRIMARY KEY (day, kind, via, source)
);

-- What happened before there were counts.
INSERT INTO counts (day, kind, via, source, times)
SELECT at / 86400000, kind, via, CASE WHEN source LIKE '%@%' THEN '' ELSE COALESCE(source, '') END, COUNT(*)
FROM events GROUP BY 1, 2, 3, 4;

INSERT INTO counts (day, kind, via, source, times)
SELECT e.at / 86400000, 'person', e.via, CASE WHEN e.source LIKE '%@%' THEN '' ELSE COALESCE(e.source, '') END, COUNT(*)
FROM people p JOIN events e
    ON e.id = CASE WHEN p.first_join IS NULL OR p.first_download < p.first_join THEN p.first_download ELSE p.first_join END
GROUP BY 1, 2, 3, 4;

INSERT INTO counts (day, kind, via, source, times)
SELECT at / 86400000, 'opt-in', via, CASE WHEN source LIKE '%@%' THEN '' ELSE COALESCE(source, '') END, COUNT(*)
FROM consents GROUP BY 1, 2, 3, 4;

INSERT INTO counts (day, kind, via, source, times)
SELECT at / 86400000, 'message', '', '', COUNT(*) FROM messages GROUP BY 1;

INSERT INTO counts (day, kind, via, source, times)
SELECT at / 86400000, 'unsubscribe', '', '', COUNT(*) FROM withdrawals GROUP BY 1;
