-- Counts of signups that are not in `counts` and `sources` yet: one row per batch, day, interface and source. Instances
-- insert rows of their own, so that none waits for the commit of another. The empty source stands for none; NULL is one
-- that is not counted by name.
CREATE TABLE pending_counts (
    day       BIGINT NOT NULL,
    via       TEXT COLLATE "C" NOT NULL,
    source    TEXT COLLATE "C",
    downloads BIGINT NOT NULL,
    people    BIGINT NOT NULL,
    opt_ins   BIGINT NOT NULL,
    joins     BIGINT NOT NULL
);

INSERT INTO schema_versions (version, oldest_compatible) VALUES (15, 9);
