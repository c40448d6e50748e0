-- What has been published. A row is never deleted, and changes once, when it is withdrawn: the
-- number of rows and of withdrawals tells whether anything changed.
CREATE TABLE releases (
    version       TEXT   NOT NULL PRIMARY KEY,
    file          TEXT   NOT NULL UNIQUE,
    elsewhere     TEXT,
    length        BIGINT NOT NULL,
    sha256        TEXT   NOT NULL,
    notes         TEXT   NOT NULL,
    build         TEXT,
    signature     TEXT,
    minimum_macos TEXT,
    prerelease    BIGINT NOT NULL CHECK (prerelease IN (0, 1)),
    published     BIGINT NOT NULL,
    withdrawn     BIGINT
);
