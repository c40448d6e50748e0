-- Counts of signups that are not in `counts` and `sources` yet: one row per batch, day, interface and source. Instances
-- insert rows of their own, so that none waits for the commit of another. The empty source stands for none; NULL is one
-- that is not counted by name.
CREATE TABLE pending_counts (
    day       INTEGER NOT NULL,
    via       TEXT NOT NULL,
    source    TEXT,
    downloads INTEGER NOT NULL,
    people    INTEGER NOT NULL,
    opt_ins   INTEGER NOT NULL,
    joins     INTEGER NOT NULL
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (15, 9);
