-- A study, its judges and their votes. What systems are called and which path is whose never leaves the server.
CREATE TABLE study (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    dataset TEXT NOT NULL,
    seed TEXT NOT NULL,               -- 64 bits without a sign, in decimal
    version TEXT NOT NULL             -- of the program that drew it
) STRICT;
CREATE TABLE systems (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE pairs (
    number INTEGER PRIMARY KEY,
    first INTEGER NOT NULL REFERENCES systems,
    second INTEGER NOT NULL REFERENCES systems,
    looked_at INTEGER NOT NULL,
    unanswered INTEGER NOT NULL,
    identical INTEGER NOT NULL,
    items INTEGER NOT NULL
) STRICT;
CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    pair INTEGER NOT NULL REFERENCES pairs,
    head TEXT NOT NULL, head_label TEXT NOT NULL,
    relation TEXT NOT NULL, relation_label TEXT NOT NULL,
    tail TEXT NOT NULL, tail_label TEXT NOT NULL,
    first_path TEXT NOT NULL,         -- JSON: the steps, without scores
    second_path TEXT NOT NULL
) STRICT;
CREATE TABLE judges (
    number INTEGER PRIMARY KEY,
    token_sum TEXT NOT NULL UNIQUE    -- SHA-256; the token itself is kept nowhere
) STRICT;
-- What a judge sees when and on which side: drawn once, so that it stays as it was in later versions.
CREATE TABLE screens (
    judge INTEGER NOT NULL REFERENCES judges,
    position INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items,
    repeat INTEGER NOT NULL,
    first_on_left INTEGER NOT NULL,
    PRIMARY KEY (judge, position),
    UNIQUE (judge, item, repeat)
) STRICT, WITHOUT ROWID;
-- One vote a screen, by the key.
CREATE TABLE votes (
    judge INTEGER NOT NULL,
    position INTEGER NOT NULL,
    choice TEXT NOT NULL CHECK (choice IN ('left', 'right', 'both', 'neither')),
    seconds REAL NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (judge, position),
    FOREIGN KEY (judge, position) REFERENCES screens
) STRICT, WITHOUT ROWID;
-- Votes that were taken back.
CREATE TABLE undone (
    judge INTEGER NOT NULL,
    position INTEGER NOT NULL,
    choice TEXT NOT NULL,
    seconds REAL NOT NULL,
    time_ms INTEGER NOT NULL,
    undone_ms INTEGER NOT NULL,
    FOREIGN KEY (judge, position) REFERENCES screens
) STRICT;
